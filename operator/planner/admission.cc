#include "operator/planner/admission.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>

#include "operator/planner/admission_order.h"
#include "operator/planner/entitlement.h"
#include "operator/planner/quotient.h"
#include "operator/planner/reclaim.h"
#include "operator/planner/sizes.h"

namespace pliant::planner {

using enum AdmissionState;

namespace {

// Bounds the time of a plan.
constexpr std::size_t kMaxFailedReclaims = 32;

}  // namespace

Admission::Admission(const Model& model, const Policy& policy, Protection protection,
                     std::span<const JobIndex> passing, Sharing& sharing)
    : model_(model),
      policy_(policy),
      protection_(protection),
      passing_(passing),
      sharing_(sharing),
      reservations_(model, policy, sharing.assignment) {}

void Admission::Run() {
  KeepPresent();
  Entitle();
  RestoreMinimums();
  Protect();
  HoldLostMinimums();
  for (const QueueIndex queue : QueueOrder()) {
    if (model_.queues[queue].is_of_pods()) KeepReclaimed();
    AdmitWaiting(queue);
  }
  reservations_.ReleaseAll();
  // Last, as when they were found: they displace nobody.
  for (const JobIndex job : passing_) GiveMinimum(job);
  Entitle();
  sharing_.again_at = reservations_.again_at();
}

void Admission::Entitle() { sharing_.queues = EntitleQueues(model_, sharing_.shares); }

std::int64_t Admission::LackingGpus(JobIndex job) const {
  return model_.GpusOf(job, model_.jobs[job].minimum - sharing_.assignment.LearnersOf(job));
}

std::int64_t Admission::UsedByQueueOf(JobIndex job) const {
  const QueueIndex queue = model_.jobs[job].queue;
  return sharing_.assignment.GpusOfQueue(queue) + reservations_.HeldOfLimit(queue);
}

std::int64_t Admission::MaxQueueGpus(JobIndex job) const {
  const QueueView& queue = QueueOf(job);
  const std::int64_t entitled = sharing_.queues[model_.jobs[job].queue].entitled_gpus;
  return std::min(std::max(entitled, queue.guaranteed_gpus), model_.QueueOf(job).limit_gpus());
}

// Whether its minimum is within the guarantee of its queue.
bool Admission::IsOwed(JobIndex job) const {
  return UsedByQueueOf(job) + LackingGpus(job) <= QueueOf(job).guaranteed_gpus;
}

// Queues that lack guaranteed GPUs first, then by their claim to the next GPU. Pods of other
// workloads come last: otherwise a job whose queue is guaranteed what they took would evict
// another.
std::vector<QueueIndex> Admission::QueueOrder() const {
  struct Turn {
    bool is_of_pods = false;
    bool has_guarantee = false;
    Quotient claim;
    QueueIndex queue = 0;
  };
  std::vector<Turn> turns;
  for (QueueIndex queue = 0; queue < std::ssize(model_.queues); ++queue) {
    const QueueView& view = *model_.queues[queue].view;
    const std::int64_t used = sharing_.assignment.GpusOfQueue(queue);
    turns.push_back({model_.queues[queue].is_of_pods(),
                     used >= view.guaranteed_gpus,
                     {.numerator = view.weight, .divisor = 2 * used + 1},
                     queue});
  }
  std::ranges::sort(turns, [](const Turn& left, const Turn& right) {
    return std::tuple(left.is_of_pods, left.has_guarantee, right.claim, left.queue) <
           std::tuple(right.is_of_pods, right.has_guarantee, left.claim, right.queue);
  });
  std::vector<QueueIndex> queues;
  std::ranges::transform(turns, std::back_inserter(queues), &Turn::queue);
  return queues;
}

// Admitted jobs, queue by queue.
std::vector<JobIndex> Admission::PresentJobs() const {
  std::vector<JobIndex> present;
  for (const QueueIndex queue : QueueOrder()) {
    std::vector<JobIndex> jobs;
    std::ranges::copy_if(model_.queues[queue].jobs, std::back_inserter(jobs),
                         [this](JobIndex job) { return model_.jobs[job].admitted_before(); });
    std::ranges::copy(InAdmissionOrder(model_, std::move(jobs)), std::back_inserter(present));
  }
  return present;
}

// New jobs, and those that have just lost their place.
std::vector<JobIndex> Admission::WaitingJobs(QueueIndex queue) const {
  std::vector<JobIndex> jobs;
  std::ranges::copy_if(model_.queues[queue].jobs, std::back_inserter(jobs),
                       [this](JobIndex job) { return !HasPlace(sharing_.shares[job].standing); });
  return InAdmissionOrder(model_, std::move(jobs));
}

// A job that has its minimum goes first, so that it does not lose it to one that lacks it. Among
// these, guarantees go first.
void Admission::KeepPresent() {
  std::vector<JobIndex> present = PresentJobs();
  std::ranges::stable_sort(present, {}, [this](JobIndex job) {
    return std::ssize(model_.jobs[job].held) < model_.jobs[job].minimum;
  });
  std::vector<JobIndex> beyond;
  for (const JobIndex job : present) {
    IsOwed(job) || QueueOf(job).guaranteed_gpus == 0 ? KeepMinimum(job) : beyond.push_back(job);
  }
  for (const JobIndex job : beyond) KeepMinimum(job);
}

// Tries the GPU products that the job may use until `give` returns true.
template <typename Give>
bool Admission::OnSomeProduct(JobIndex job, const Give& give) {
  const Job& of = model_.jobs[job];
  Assignment& assignment = sharing_.assignment;
  const bool may_choose = !of.other_fits.empty() && assignment.LearnersOf(job) == 0;
  if (give()) return true;
  if (!may_choose) return false;
  for (const int fit : of.other_fits) {
    assignment.UseFit(job, fit);
    if (give()) return true;
  }
  assignment.UseFit(job, of.fit);
  return false;
}

bool Admission::GiveMinimum(JobIndex job) {
  const Job& of = model_.jobs[job];
  const LearnerCount lacking = of.minimum - sharing_.assignment.LearnersOf(job);
  if (of.demand < of.minimum) return false;
  const auto give = [&] { return sharing_.assignment.Add(job, lacking); };
  if (!OnSomeProduct(job, give)) return false;
  Standing(job) = kAdmitted;
  return true;
}

void Admission::KeepMinimum(JobIndex job) {
  const Job& of = model_.jobs[job];
  if (QueueOf(job).stop == QueueStop::kDrain || GiveMinimum(job)) return;
  const std::optional<WallTime>& since = of.view->share.below_minimum_since;
  const bool too_long = since && model_.snapshot->now - *since >= policy_.below_minimum_grace;
  if (too_long) {
    Standing(job) = kReleased;
    return;
  }
  Assignment& assignment = sharing_.assignment;
  for (const HeldAt& held : of.held_at) {
    for (LearnerCount kept = 0; kept < held.learners; ++kept) {
      if (assignment.LearnersOf(job) >= of.demand || !assignment.AddOn(job, held.node)) break;
    }
  }
  // With no learner left to keep, it has lost its place and waits like the others.
  if (assignment.LearnersOf(job) > 0) Standing(job) = kBelowMinimum;
}

// Jobs that lost nodes, but whose queue is guaranteed the GPUs.
void Admission::RestoreMinimums() {
  for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
    const bool lacks =
        Standing(job) == kBelowMinimum && model_.jobs[job].demand >= model_.jobs[job].minimum;
    if (lacks && IsOwed(job)) Reclaim(job);
  }
}

// Gives protected jobs their present size before other jobs are considered, as far as their queue
// is entitled to it: a job may keep GPUs from others of its queue, but not from other queues.
void Admission::Protect() {
  if (protection_ == Protection::kNobody) return;
  for (const JobIndex job : PresentJobs()) {
    if (Standing(job) != kAdmitted) continue;
    const Job& of = model_.jobs[job];
    LearnerCount size = of.protected_size.value_or(0);
    if (protection_ == Protection::kFreshAndFrozen) {
      size = std::max(size, of.frozen_size.value_or(0));
    }
    while (sharing_.assignment.LearnersOf(job) < size &&
           UsedByQueueOf(job) + of.needs().gpus <= MaxQueueGpus(job) &&
           sharing_.assignment.Add(job)) {
    }
    const LearnerCount has = sharing_.assignment.LearnersOf(job);
    const LearnerCount efficient = LargestEfficientSize(*of.view, has);
    if (efficient < has) sharing_.assignment.Remove(job, has - efficient);
  }
}

// A job that lost its minimum gets it back before jobs that wait.
void Admission::HoldLostMinimums() {
  for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
    if (Standing(job) == kBelowMinimum) reservations_.Hold(job, INT64_MAX);
  }
}

// A reclaim may release more than is taken. Jobs that ran go before pods of other workloads.
void Admission::KeepReclaimed() {
  for (const QueueIndex queue : QueueOrder()) {
    for (const JobIndex job : WaitingJobs(queue)) {
      const bool fits_limit =
          UsedByQueueOf(job) + LackingGpus(job) <= model_.queues[queue].limit_gpus();
      if (Standing(job) != kReclaimed || !fits_limit || !GiveMinimum(job)) continue;
      reservations_.Forget(job);
      std::erase_if(keepers_, [job](const Keeper& keeper) { return keeper.job == job; });
    }
  }
}

void Admission::AdmitWaiting(QueueIndex queue) {
  reservations_.ForgetMarks();
  int waiting = 0;
  for (const JobIndex job : WaitingJobs(queue)) {
    const AdmissionState standing = Admit(job, waiting);
    if (standing == kAdmitted) continue;
    sharing_.shares[job].jobs_before = waiting;
    if (WaitsInQueue(standing)) ++waiting;
    // A job that is released now says so, and not what it waits for.
    AdmissionState& now = Standing(job);
    if (now != kReleased && now != kReclaimed) now = standing;
  }
}

// Why GPUs that become free do not help it; kQueued: they do.
AdmissionState Admission::WhyNever(JobIndex job) const {
  const Job& of = model_.jobs[job];
  const Queue& queue = model_.QueueOf(job);
  if (!of.view->queue_refusal.empty()) return kQueueRefused;
  if (!queue.exists) return kQueueMissing;
  if (!model_.pool_exists) return kPoolMissing;
  if (!queue.admits()) return kQueueStopped;
  const Fit& fit = sharing_.assignment.FitOf(job);
  if (fit.slots == 0) return kNoNodeFits;
  if (fit.slots < of.minimum) return kTooLarge;
  if (of.demand < of.minimum) return kCapped;
  const bool beyond_limit = LackingGpus(job) > queue.limit_gpus();
  return beyond_limit ? kAboveLimit : kQueued;
}

AdmissionState Admission::Admit(JobIndex job, int jobs_before) {
  if (const AdmissionState never = WhyNever(job); never != kQueued) return never;
  if (model_.jobs[job].is_pod) {
    // Guarantees come before it. Nothing is held if it does not fit: no job shrinks in vain.
    const std::int64_t entitled = sharing_.queues[model_.jobs[job].queue].entitled_gpus;
    const bool is_within = UsedByQueueOf(job) + LackingGpus(job) <= entitled;
    return is_within && GiveMinimum(job) ? kAdmitted : kQueued;
  }
  if (QueueOf(job).strict && jobs_before > 0) return kQueuedBehind;
  // A job that waits for its namespace's budget does not hold GPUs from others.
  if (!sharing_.assignment.IsInBudget(job, model_.jobs[job].minimum)) return kOverBudget;
  const std::int64_t lacking = LackingGpus(job);
  const std::int64_t sum = UsedByQueueOf(job) + lacking;
  if (lacking > MaxQueueGpus(job)) return Wait(job, kQueueShare);
  if (sum > model_.QueueOf(job).limit_gpus()) return Wait(job, kQueueLimit);
  if (sum <= MaxQueueGpus(job)) {
    // A reservation does not stand in the way of a guarantee.
    if (IsOwed(job)) sharing_.assignment.OpenAll();
    if (GiveMinimum(job)) return kAdmitted;
    if (IsOwed(job) && Reclaim(job)) return kAdmitted;
  }
  return Wait(job, IsWithheld(lacking, job) ? kReserved : kQueued);
}

// Whether so many GPUs are left, but not for this job.
bool Admission::IsWithheld(std::int64_t gpus, JobIndex job) const {
  const std::int64_t left = sharing_.assignment.free_gpus() - gpus;
  return left >= 0 && left < sharing_.queues[model_.jobs[job].queue].withheld_gpus;
}

bool Admission::Reclaim(JobIndex job) {
  if (!QueueOf(job).evicts) return false;
  return OnSomeProduct(job, [&] { return ReclaimOnProduct(job); });
}

bool Admission::ReclaimOnProduct(JobIndex job) {
  // A reclaim that failed once fails again while nothing is released, and each try looks at all
  // jobs.
  const Job& of = model_.jobs[job];
  const FailedReclaim failed{of.queue, sharing_.assignment.FitIndexOf(job), of.minimum};
  if (failed_reclaims_.contains(failed) || failed_reclaims_.size() >= kMaxFailedReclaims) {
    return false;
  }
  if (!ReclaimFor(job, model_, reservations_, sharing_)) {
    failed_reclaims_.insert(failed);
    return false;
  }
  failed_reclaims_.clear();
  Standing(job) = kAdmitted;
  Entitle();
  return true;
}

// No later job of the queue takes what this one waits for: otherwise small jobs could keep a large
// one waiting forever. Running jobs may still grow. GPUs that they leave idle are kept for it only
// from time to time. So is anything, for a job whose minimum is more than its queue's share.
AdmissionState Admission::Wait(JobIndex job, AdmissionState why) {
  const std::int64_t max_queue_gpus = MaxQueueGpus(job);
  const bool is_behind = reservations_.IsBehind(job);
  const bool keeps_idle = !is_behind && reservations_.KeepsIdleGpus(job, /*at_once=*/IsOwed(job));
  if (why == kQueueLimit) {
    reservations_.HoldLimit(job);
    reservations_.MarkNodesOf(job);
  } else if (why != kQueueShare || keeps_idle) {
    sharing_.shares[job].attainable_gpus = keeps_idle
                                               ? reservations_.HoldAndClose(job, max_queue_gpus)
                                               : reservations_.Hold(job, max_queue_gpus);
    reservations_.MarkNodesOf(job);
  }
  if (keeps_idle) keepers_.push_back({job, why, max_queue_gpus});
  return is_behind ? kQueuedBehind : why;
}

// Whether its minimum fits into what is left. Assigns it.
bool Admission::Pass(JobIndex job) {
  Assignment& assignment = sharing_.assignment;
  const LearnerCount lacking = model_.jobs[job].minimum - assignment.LearnersOf(job);
  const std::int64_t gpus = model_.GpusOf(job, lacking);
  if (UsedByQueueOf(job) + gpus > model_.QueueOf(job).limit_gpus()) return false;
  const std::int64_t withheld = sharing_.queues[model_.jobs[job].queue].withheld_gpus;
  return assignment.free_gpus() - gpus >= withheld &&
         OnSomeProduct(job, [&] { return assignment.Add(job, lacking); });
}

std::vector<JobIndex> Admission::WhoMayPass() {
  std::vector<JobIndex> passing;
  Assignment& assignment = sharing_.assignment;
  if (assignment.free_gpus() == 0) return passing;
  const Assignment::Moment before = assignment.Now();
  HoldLostMinimums();
  for (const Keeper& keeper : keepers_) {
    if (Pass(keeper.job)) {
      passing.push_back(keeper.job);
    } else if (keeper.why == kQueueLimit) {
      reservations_.HoldLimit(keeper.job);
    } else {
      reservations_.HoldAndClose(keeper.job, keeper.max_queue_gpus);
    }
  }
  for (const QueueIndex queue : QueueOrder()) {
    for (const JobIndex job : WaitingJobs(queue)) {
      const bool passes = assignment.LearnersOf(job) >= model_.jobs[job].minimum;
      if (passes || !WaitsInQueue(Standing(job))) continue;
      if (Pass(job)) {
        passing.push_back(job);
      } else if (model_.queues[queue].view->strict) {
        break;
      }
    }
  }
  reservations_.ReleaseAll();
  assignment.ReturnTo(before);
  return passing;
}

}  // namespace pliant::planner
