#include "operator/planner/sharing.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "operator/planner/sizes.h"

namespace pliant::planner {
namespace {

// The next size that a job may get, and its claim to the last GPU of it by Sainte-Laguë's rule.
struct NextSize {
  JobIndex job = 0;
  LearnerCount to = 0;
  std::int64_t priority = 0;
  std::int64_t divisor = 1;  // 2 * GPUs held + 1, if a learner has one GPU
  bool keeps = false;        // the job already has these learners
  WallTime submitted;
};

// True if `left` comes after `right`. Among equal claims the one that changes nothing goes first,
// then the older job.
struct LowerClaim {
  bool operator()(const NextSize& left, const NextSize& right) const {
    const std::int64_t left_claim = left.priority * right.divisor;
    const std::int64_t right_claim = right.priority * left.divisor;
    return std::tuple(left_claim, left.keeps, right.submitted, right.job) <
           std::tuple(right_claim, right.keeps, left.submitted, left.job);
  }
};

class Sharer {
 public:
  // `passing`: jobs that get idle GPUs although another job waits for them.
  Sharer(const Model& model, const Policy& policy, Protection protection,
         std::vector<JobIndex> passing)
      : model_(model),
        policy_(policy),
        protection_(protection),
        passing_(std::move(passing)),
        result_{.shares = std::vector<Share>(model.jobs.size()), .assignment = Assignment(model)},
        node_is_awaited_(model.nodes.size()),
        node_is_reserved_(model.nodes.size()),
        fit_is_closed_(model.fits.size()) {}

  Sharing Run() {
    const std::vector<JobIndex> present = PresentJobs();
    for (const JobIndex job : present) KeepAdmitted(job);
    for (const JobIndex job : present) Protect(job);
    for (const JobIndex job : passing_) GiveMinimum(job);
    for (const JobIndex job : present) {
      const bool lacks = result_.shares[job].standing == AdmissionState::kBelowMinimum;
      // If it still lacks its minimum after the grace period, it is released.
      if (!lacks || !result_.assignment.IsInBudget(job, Lacks(job))) continue;
      if (WhyItWaits(job) == AdmissionState::kQueued) HoldNodesFor(job, /*reserves=*/true);
    }
    for (const JobIndex job : WaitingJobs()) AdmitWaiting(job);
    result_.assignment.OpenAll();
    FillByPriority();
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      result_.shares[job].learners = result_.assignment.LearnersOf(job);
    }
    return result_;
  }

  // Call after Run: jobs that wait behind others but whose minimums fit into what is left.
  std::vector<JobIndex> WhoMayPass() {
    std::vector<JobIndex> passing;
    if (behind_.empty() || result_.assignment.free_gpus() == 0) return passing;
    Assignment& left = result_.assignment;
    for (NodeIndex node = 0; node < std::ssize(model_.nodes); ++node) {
      if (node_is_reserved_[node]) left.Close(node);
    }
    for (const JobIndex job : behind_) {
      if (left.Add(job, model_.jobs[job].minimum)) passing.push_back(job);
    }
    return passing;
  }

 private:
  // The sort key of a job, copied into one place: each plan sorts thousands, and their views are
  // spread in memory.
  struct AdmissionKey {
    bool lacks_minimum = false;  // although it was admitted before
    std::int64_t attained_gpu_seconds = 0;
    std::int64_t priority = 0;
    WallTime submitted;
    JobIndex job = 0;

    // Least attained service first: GPU-seconds divided by priority; then the job submitted
    // earlier.
    bool operator<(const AdmissionKey& other) const {
      return std::tuple(lacks_minimum, attained_gpu_seconds * other.priority, submitted, job) <
             std::tuple(other.lacks_minimum, other.attained_gpu_seconds * priority, other.submitted,
                        other.job);
    }
  };

  AdmissionKey AdmissionKeyOf(JobIndex job) const {
    const JobView& view = *model_.jobs[job].view;
    return {.attained_gpu_seconds = view.attained_gpu_seconds,
            .priority = view.priority,
            .submitted = view.submitted,
            .job = job};
  }

  static std::vector<JobIndex> InOrder(std::vector<AdmissionKey> turns) {
    std::ranges::sort(turns, std::less());
    std::vector<JobIndex> jobs;
    jobs.reserve(turns.size());
    for (const AdmissionKey& turn : turns) jobs.push_back(turn.job);
    return jobs;
  }

  // Admitted jobs. A job that has its minimum goes first, so that it does not lose it to one that
  // lacks it.
  std::vector<JobIndex> PresentJobs() const {
    std::vector<AdmissionKey> turns;
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      const Job& of = model_.jobs[job];
      if (!of.active || !of.admitted_before()) continue;
      turns.push_back(AdmissionKeyOf(job));
      turns.back().lacks_minimum = std::ssize(of.held) < of.minimum;
    }
    return InOrder(std::move(turns));
  }

  // New jobs, and those that have just lost their place.
  std::vector<JobIndex> WaitingJobs() const {
    std::vector<AdmissionKey> turns;
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      const AdmissionState standing = result_.shares[job].standing;
      if (!model_.jobs[job].active || standing == AdmissionState::kAdmitted) continue;
      if (standing != AdmissionState::kBelowMinimum) turns.push_back(AdmissionKeyOf(job));
    }
    return InOrder(std::move(turns));
  }

  bool GiveMinimum(JobIndex job) {
    const Job& of = model_.jobs[job];
    if (of.demand < of.minimum || !result_.assignment.Add(job, of.minimum)) return false;
    result_.shares[job].standing = AdmissionState::kAdmitted;
    return true;
  }

  void KeepAdmitted(JobIndex job) {
    if (GiveMinimum(job)) return;
    const Job& of = model_.jobs[job];
    const std::optional<WallTime>& since = of.view->below_minimum_since;
    const bool too_long = since && model_.snapshot->now - *since >= policy_.below_minimum_grace;
    if (too_long) {
      result_.shares[job].standing = AdmissionState::kReleased;
      return;
    }
    for (const HeldAt& held : of.held_at) {
      for (LearnerCount kept = 0; kept < held.learners; ++kept) {
        if (result_.assignment.LearnersOf(job) >= of.demand) break;
        if (!result_.assignment.AddOn(job, held.node)) break;
      }
    }
    // With no learner left to keep, it has lost its place and waits like the others.
    if (result_.assignment.LearnersOf(job) > 0) {
      result_.shares[job].standing = AdmissionState::kBelowMinimum;
    }
  }

  // Gives a protected job its present size before other jobs are considered.
  void Protect(JobIndex job) {
    const Job& of = model_.jobs[job];
    if (protection_ == Protection::kNobody || !IsAdmitted(job)) return;
    LearnerCount size = of.protected_size.value_or(0);
    if (protection_ == Protection::kFreshAndFrozen)
      size = std::max(size, of.frozen_size.value_or(0));
    while (result_.assignment.LearnersOf(job) < size && result_.assignment.Add(job)) {
    }
  }

  LearnerCount Lacks(JobIndex job) const {
    return model_.jobs[job].minimum - result_.assignment.LearnersOf(job);
  }

  AdmissionState WhyItWaits(JobIndex job) const {
    const Job& of = model_.jobs[job];
    const Fit& fit = model_.fits[of.fit];
    if (fit.slots == 0) return AdmissionState::kNoNodeFits;
    if (fit.slots < of.minimum) return AdmissionState::kTooLarge;
    return of.demand < of.minimum ? AdmissionState::kCapped : AdmissionState::kQueued;
  }

  // No later job is admitted to a node that a job waits for: otherwise small jobs could keep a
  // large one waiting forever. Running jobs may still grow. GPUs that they leave idle are reserved
  // for the waiting job only from time to time (`reserves`).
  void HoldNodesFor(JobIndex job, bool reserves) {
    const bool is_closed = std::exchange(fit_is_closed_[model_.jobs[job].fit], true);
    if (is_closed && !reserves) return;
    for (const NodeIndex node : model_.fits[model_.jobs[job].fit].nodes) {
      if (!is_closed) result_.assignment.Close(node);
      node_is_awaited_[node] = true;
      if (reserves) node_is_reserved_[node] = true;
    }
    if (!is_closed) fit_is_awaited_.assign(model_.fits.size(), std::nullopt);
  }

  bool Reserves(const JobView& job) {
    const WallTime since = job.waiting_since.value_or(job.submitted);
    const auto waited = std::max(model_.snapshot->now - since, WallTime::duration::zero());
    const WallTime::duration round = policy_.reserve_after + policy_.reserve_for;
    const auto in_round = waited % round;
    const bool reserves = in_round >= policy_.reserve_after;
    const WallTime until =
        model_.snapshot->now - in_round + (reserves ? round : policy_.reserve_after);
    if (!result_.again_at || until < *result_.again_at) result_.again_at = until;
    return reserves;
  }

  // Whether another job waits for a node that this job can use.
  bool IsBehind(JobIndex job) {
    const int fit = model_.jobs[job].fit;
    if (fit_is_awaited_.empty()) return false;
    if (!fit_is_awaited_[fit]) {
      fit_is_awaited_[fit] = std::ranges::any_of(
          model_.fits[fit].nodes, [this](NodeIndex node) { return node_is_awaited_[node]; });
    }
    return *fit_is_awaited_[fit];
  }

  void AdmitWaiting(JobIndex job) {
    AdmissionState why = WhyItWaits(job);
    if (why == AdmissionState::kQueued) {
      if (GiveMinimum(job)) return;
      // A job that waits for its namespace's budget does not block nodes for others.
      if (!result_.assignment.IsInBudget(job, model_.jobs[job].minimum)) {
        why = AdmissionState::kOverBudget;
      } else if (IsBehind(job)) {
        why = AdmissionState::kQueuedBehind;
        behind_.push_back(job);
        HoldNodesFor(job, /*reserves=*/false);
      } else {
        HoldNodesFor(job, Reserves(*model_.jobs[job].view));
      }
    }
    AdmissionState& standing = result_.shares[job].standing;
    if (standing != AdmissionState::kReleased) standing = why;
  }

  bool IsAdmitted(JobIndex job) const {
    return result_.shares[job].standing == AdmissionState::kAdmitted;
  }

  // The next size for the job; nullopt if it has all that it may have.
  std::optional<NextSize> Next(JobIndex job) const {
    const Job& of = model_.jobs[job];
    const LearnerCount now = result_.assignment.LearnersOf(job);
    LearnerCount most = of.demand;
    if (protection_ == Protection::kFreshAndFrozen && of.frozen_size) most = *of.frozen_size;
    const std::optional<LearnerCount> to = NextFasterSize(*of.view, now);
    if (!to || *to > most) return std::nullopt;
    return NextSize{.job = job,
                    .to = *to,
                    .priority = of.view->priority,
                    .divisor = of.needs().gpus * (2 * std::int64_t{*to} - 1),
                    .keeps = *to <= std::ssize(of.held),
                    .submitted = of.view->submitted};
  }

  void FillByPriority() {
    std::priority_queue<NextSize, std::vector<NextSize>, LowerClaim> next;
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      if (!IsAdmitted(job)) continue;
      if (const auto first = Next(job)) next.push(*first);
    }
    struct Refusal {
      JobIndex job;
      std::int64_t grants;  // number of grants made before this refusal
    };
    std::vector<Refusal> refusals;
    std::int64_t grants = 0;
    while (!next.empty()) {
      const NextSize top = next.top();
      next.pop();
      const LearnerCount more = top.to - result_.assignment.LearnersOf(top.job);
      const std::int64_t gpus = model_.jobs[top.job].needs().gpus;
      if (!result_.assignment.IsInBudget(top.job, more)) {
        result_.shares[top.job].stopped_by = StoppedBy::kBudget;
        continue;
      }
      const bool one_would_fit = more > 1 && result_.assignment.free_gpus() >= gpus;
      if (!result_.assignment.Add(top.job, more)) {
        result_.shares[top.job].stopped_by = one_would_fit ? StoppedBy::kSizes : StoppedBy::kOthers;
        if (!one_would_fit) refusals.push_back({top.job, grants});
        continue;
      }
      ++grants;
      if (const auto following = Next(top.job)) next.push(*following);
    }
    // A job that was refused while others still got GPUs, or while GPUs are left, lacks suitable
    // nodes.
    for (const Refusal& refusal : refusals) {
      const bool left = result_.assignment.free_gpus() >= model_.jobs[refusal.job].needs().gpus;
      if (refusal.grants < grants || left) {
        result_.shares[refusal.job].stopped_by = StoppedBy::kNodes;
      }
    }
  }

  const Model& model_;
  const Policy& policy_;
  const Protection protection_;
  const std::vector<JobIndex> passing_;
  Sharing result_;
  std::vector<JobIndex> behind_;  // in admission order
  std::vector<char> node_is_awaited_;
  std::vector<char> node_is_reserved_;
  std::vector<char> fit_is_closed_;  // some job waits for all of its nodes
  // by fit, computed on demand; empty: no job waits
  std::vector<std::optional<bool>> fit_is_awaited_;
};

}  // namespace

Sharing ShareOut(const Model& model, const Policy& policy, Protection protection) {
  Sharer sharer(model, policy, protection, {});
  Sharing sharing = sharer.Run();
  std::vector<JobIndex> passing = sharer.WhoMayPass();
  if (passing.empty()) return sharing;
  // Passing jobs then take part in the sharing, as they will in the next plan.
  return Sharer(model, policy, protection, std::move(passing)).Run();
}

}  // namespace pliant::planner
