#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "operator/planner/entitlement.h"
#include "operator/planner/quotient.h"
#include "operator/planner/sharing_steps.h"
#include "operator/planner/sizes.h"
#include "operator/planner/speed_curve.h"

namespace pliant::planner {
namespace {

// The next size that a job may get, and its claim to the GPUs of it.
struct NextSize {
  JobIndex job = 0;
  LearnerCount to = 0;
  std::int64_t more_gpus = 0;
  // In queues whose jobs have precedence, the highest goes first; else all have 0.
  std::int64_t precedence = 0;
  Quotient claim;
  bool keeps = false;  // the job already has these learners
  WallTime submitted;

  // Whether it comes after the other. Among equal claims the one that changes nothing goes first,
  // then the older job.
  bool operator<(const NextSize& other) const {
    return std::tuple(precedence, claim, keeps, other.submitted, other.job) <
           std::tuple(other.precedence, other.claim, other.keeps, submitted, job);
  }
};

class Filler {
 public:
  Filler(const Model& model, const Policy& policy, Protection protection, Sharing& sharing)
      : model_(model),
        policy_(policy),
        protection_(protection),
        sharing_(sharing),
        next_(model.queues.size()) {}

  void Run() {
    Fill([this](JobIndex job) { return EntitledSize(job); });
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      Share& share = sharing_.shares[job];
      share.entitled_learners = std::min(sharing_.assignment.LearnersOf(job),
                                         std::max(EntitledSize(job), LearnerCount{0}));
    }
    lends_ = true;
    Fill([this](JobIndex job) { return model_.jobs[job].demand; });
    if (std::ranges::any_of(model_.jobs, &Job::yields)) {
      yielding_too_ = true;
      Fill([this](JobIndex job) { return model_.jobs[job].demand; });
    }
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      sharing_.shares[job].learners = sharing_.assignment.LearnersOf(job);
    }
  }

 private:
  LearnerCount EntitledSize(JobIndex job) const {
    const Job& of = model_.jobs[job];
    if (!of.active) return 0;
    const std::int64_t entitled = sharing_.shares[job].entitled_gpus / of.needs().gpus;
    return static_cast<LearnerCount>(std::min<std::int64_t>(entitled, of.demand));
  }

  // The most that the job may have if it has up to `size` for its own sake.
  LearnerCount MaxSize(JobIndex job, LearnerCount size) const {
    const Job& of = model_.jobs[job];
    LearnerCount max = size;
    if (protection_ == Protection::kFreshAndFrozen && of.frozen_size) max = *of.frozen_size;
    // Nobody decides on a queue that does not exist, nor on its pool: its jobs keep what they have.
    if (!model_.QueueOf(job).exists) {
      max = std::min(max, static_cast<LearnerCount>(std::ssize(of.held)));
    }
    return max;
  }

  // The next size for the job, up to `max`; nullopt if it has all that it may have.
  std::optional<NextSize> Next(JobIndex job, LearnerCount max) const {
    const Job& of = model_.jobs[job];
    const LearnerCount now = sharing_.assignment.LearnersOf(job);
    std::optional<LearnerCount> to;
    std::optional<LargerSize> by_speed;
    if (of.speeds) {
      by_speed = of.speeds->Next(now, max);
      if (by_speed) to = by_speed->to;
    } else {
      to = NextEfficientSize(*of.view, now, max);
    }
    if (!to) return std::nullopt;
    const std::int64_t more_gpus = model_.GpusOf(job, *to - now);
    const bool keeps = *to <= std::ssize(of.held);
    if (of.yields && !yielding_too_ && !keeps && !IsGuaranteed(job, more_gpus)) return std::nullopt;
    const int hold = std::max(policy_.hold_percent, of.view->training.hold_percent);
    // Otherwise by Sainte-Laguë's rule, to the last GPU of it.
    const Quotient claim = by_speed
                               ? ClaimBySpeed(of.weight, *by_speed, more_gpus, keeps ? hold : 0)
                               : Quotient{.numerator = of.weight,
                                          .divisor = of.needs().gpus * (2 * std::int64_t{*to} - 1)};
    const QueuePolicy policy = model_.QueueOf(job).view->policy;
    const std::int64_t age = -of.view->submitted.time_since_epoch().count();
    return NextSize{.job = job,
                    .to = *to,
                    .more_gpus = more_gpus,
                    .precedence = policy == QueuePolicy::kPriority ? of.view->priority
                                  : policy == QueuePolicy::kFifo   ? age
                                                                   : 0,
                    .claim = claim,
                    .keeps = keeps,
                    .submitted = of.view->submitted};
  }

  // Whether so many GPUs more are within the guarantee of its queue.
  bool IsGuaranteed(JobIndex job, std::int64_t more_gpus) const {
    const QueueIndex queue = model_.jobs[job].queue;
    return sharing_.assignment.GpusOfQueue(queue) + more_gpus <=
           model_.queues[queue].view->guaranteed_gpus;
  }

  void Push(JobIndex job, LearnerCount max) {
    if (const auto next = Next(job, max)) {
      std::vector<NextSize>& sizes = next_[model_.jobs[job].queue];
      sizes.push_back(*next);
      std::push_heap(sizes.begin(), sizes.end());
    }
  }

  // The next queue; nullopt: no job wants GPUs. One to which these are guaranteed comes before the
  // others, which may need the same nodes; then the one with the highest claim to the GPUs that its
  // first job wants.
  std::optional<QueueIndex> NextQueue() const {
    if (next_.size() == 1) return next_[0].empty() ? std::nullopt : std::optional(0);
    std::optional<QueueIndex> best;
    std::tuple<bool, Quotient, bool> best_claim;
    for (QueueIndex queue = 0; queue < std::ssize(next_); ++queue) {
      if (next_[queue].empty()) continue;
      const NextSize& first = next_[queue].front();
      const std::int64_t gpus = sharing_.assignment.GpusOfQueue(queue) + first.more_gpus;
      const QueueView& view = *model_.queues[queue].view;
      const Quotient quotient{.numerator = view.weight, .divisor = 2 * gpus - 1};
      const auto claim = std::tuple(gpus <= view.guaranteed_gpus, quotient, first.keeps);
      if (best && claim <= best_claim) continue;
      best = queue;
      best_claim = claim;
    }
    return best;
  }

  template <typename Size>
  void Fill(const Size& size) {
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      const bool grows = sharing_.shares[job].standing == AdmissionState::kAdmitted;
      if (grows) Push(job, MaxSize(job, size(job)));
    }
    while (const std::optional<QueueIndex> queue = NextQueue()) {
      std::vector<NextSize>& sizes = next_[*queue];
      std::pop_heap(sizes.begin(), sizes.end());
      const NextSize top = sizes.back();
      sizes.pop_back();
      if (Grant(top)) {
        Push(top.job, MaxSize(top.job, size(top.job)));
      } else if (model_.jobs[top.job].speeds) {
        Push(top.job, LargestBelow(top));
      }
    }
  }

  bool Grant(const NextSize& size) {
    Assignment& assignment = sharing_.assignment;
    StoppedBy& stopped_by = sharing_.shares[size.job].stopped_by;
    const Job& job = model_.jobs[size.job];
    const LearnerCount more = size.to - assignment.LearnersOf(size.job);
    if (!assignment.IsInBudget(size.job, more)) {
      stopped_by = StoppedBy::kBudget;
      return false;
    }
    if (assignment.GpusOfQueue(job.queue) + size.more_gpus >
        model_.queues[job.queue].limit_gpus()) {
      stopped_by = StoppedBy::kQueueLimit;
      return false;
    }
    const bool are_left = assignment.free_gpus() >= size.more_gpus;
    if (lends_ && are_left &&
        assignment.free_gpus() - size.more_gpus < sharing_.queues[job.queue].withheld_gpus) {
      stopped_by = StoppedBy::kReserved;
      return false;
    }
    const bool one_would_fit = more > 1 && assignment.free_gpus() >= job.needs().gpus;
    if (assignment.Add(size.job, more)) return true;
    // Once there were enough GPUs, on nodes that it cannot use, that is why it has no more.
    if (are_left || stopped_by == StoppedBy::kNodes) {
      stopped_by = StoppedBy::kNodes;
    } else {
      stopped_by = one_would_fit ? StoppedBy::kSizes : StoppedBy::kOthers;
    }
    return false;
  }

  // A bound of the sizes to try after this one was refused.
  LearnerCount LargestBelow(const NextSize& size) {
    const Assignment& assignment = sharing_.assignment;
    const Job& job = model_.jobs[size.job];
    const LearnerCount now = assignment.LearnersOf(size.job);
    std::int64_t gpus = model_.queues[job.queue].limit_gpus() - assignment.GpusOfQueue(job.queue);
    if (lends_) {
      // GPUs on lost nodes are not free, and not withheld.
      const std::int64_t left = assignment.free_gpus();
      const std::int64_t withheld = sharing_.queues[job.queue].withheld_gpus;
      if (left >= size.more_gpus && withheld > 0) gpus = std::min(gpus, left - withheld);
    }
    const std::int64_t most =
        std::clamp<std::int64_t>(gpus / job.needs().gpus, 0, std::int64_t{size.to} - now - 1);
    return now + sharing_.assignment.LearnersThatFit(size.job, static_cast<LearnerCount>(most));
  }

  const Model& model_;
  const Policy& policy_;
  const Protection protection_;
  Sharing& sharing_;
  std::vector<std::vector<NextSize>> next_;  // by queue: a heap
  bool lends_ = false;
  bool yielding_too_ = false;  // jobs that yield take what is left
};

}  // namespace

void FillAndLend(SharingRound& round) {
  Sharing& sharing = round.sharing;
  EntitleJobs(round.model, round.policy, sharing.queues, sharing.shares);
  Filler(round.model, round.policy, round.protection, sharing).Run();
}

}  // namespace pliant::planner
