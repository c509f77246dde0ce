#include "operator/planner/reclaim.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <tuple>

namespace pliant::planner {
namespace {

// Bounds the time of a plan: more jobs are not released for one.
constexpr std::size_t kMaxCandidates = 256;

class Reclaiming {
 public:
  Reclaiming(JobIndex job, const Model& model, Reservations& reservations, Sharing& sharing)
      : job_(job),
        model_(model),
        reservations_(reservations),
        sharing_(sharing),
        assignment_(sharing.assignment),
        held_gpus_(reservations.HeldByQueue()) {}

  bool Run() {
    if (!AnyQueueBorrows()) return false;
    const Assignment::Moment before = assignment_.Now();
    if (ShrinkBorrowers()) return true;
    for (const bool spares_guarantees : {true, false}) {
      for (const Borrower& borrower : Borrowers()) {
        if (!MayRelease(borrower.job, spares_guarantees)) continue;
        released_.push_back({borrower.job, assignment_.LearnersOf(borrower.job)});
        assignment_.Remove(borrower.job, assignment_.LearnersOf(borrower.job));
        if (!HasRoom() || !assignment_.Add(job_, Lacking())) continue;
        GiveBackUnneeded();
        return true;
      }
    }
    assignment_.ReturnTo(before);
    return false;
  }

 private:
  struct Borrower {
    JobIndex job = 0;
    WallTime started;
    int priority = 0;
  };
  struct Released {
    JobIndex job = 0;
    LearnerCount learners = 0;
  };

  LearnerCount Lacking() const { return model_.jobs[job_].minimum - assignment_.LearnersOf(job_); }

  bool AnyQueueBorrows() const {
    for (QueueIndex queue = 0; queue < std::ssize(model_.queues); ++queue) {
      if (IsBorrower(queue)) return true;
    }
    return false;
  }

  // Whether its minimum fits without moving others: that is quick to find out.
  bool HasRoom() const {
    std::int64_t slots = 0;
    for (const NodeIndex node : assignment_.FitOf(job_).nodes) {
      slots += assignment_.SlotsOn(job_, node);
      if (slots >= Lacking()) return true;
    }
    return false;
  }

  // Takes what protected jobs of borrowers have beyond their minimums: they are shrunk before any
  // job is released. Returns whether the job fits then.
  bool ShrinkBorrowers() {
    bool has_shrunk = false;
    for (const Borrower& borrower : Borrowers()) {
      const LearnerCount more =
          assignment_.LearnersOf(borrower.job) - model_.jobs[borrower.job].minimum;
      if (more <= 0) continue;
      assignment_.Remove(borrower.job, more);
      has_shrunk = true;
    }
    return has_shrunk && assignment_.Add(job_, Lacking());
  }

  // Jobs with learners where `job_` could have some.
  std::vector<Borrower> Borrowers() const {
    std::vector<char> is_useful(model_.nodes.size());
    for (const NodeIndex node : assignment_.FitOf(job_).nodes) is_useful[node] = true;
    std::vector<Borrower> borrowers;
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      if (!HasPlace(sharing_.shares[job].standing)) continue;
      const bool useful = std::ranges::any_of(
          assignment_.ClaimsOf(job), [&](const Claim& claim) { return is_useful[claim.node]; });
      if (!useful || !IsBorrower(model_.jobs[job].queue)) continue;
      const JobView& view = *model_.jobs[job].view;
      borrowers.push_back({job, view.share.started.value_or(model_.snapshot->now), view.priority});
    }
    std::ranges::sort(borrowers, [](const Borrower& left, const Borrower& right) {
      return std::tuple(right.started, left.priority, right.job) <
             std::tuple(left.started, right.priority, left.job);
    });
    if (borrowers.size() > kMaxCandidates) borrowers.resize(kMaxCandidates);
    return borrowers;
  }

  std::int64_t BeyondGuarantee(QueueIndex queue) const {
    return assignment_.GpusOfQueue(queue) - held_gpus_[queue] -
           model_.queues[queue].view->guaranteed_gpus;
  }
  bool IsBorrower(QueueIndex queue) const {
    return queue != model_.jobs[job_].queue && BeyondGuarantee(queue) > 0;
  }

  bool MayRelease(JobIndex job, bool spares_guarantees) const {
    const QueueIndex queue = model_.jobs[job].queue;
    if (assignment_.LearnersOf(job) == 0 || !IsBorrower(queue)) return false;
    const std::int64_t gpus = model_.GpusOf(job, assignment_.LearnersOf(job));
    return !spares_guarantees || gpus <= BeyondGuarantee(queue);
  }

  // A job that was released in vain, because a later one had the nodes that were needed.
  void GiveBackUnneeded() {
    for (const Released& released : std::views::reverse(released_)) {
      if (assignment_.Add(released.job, released.learners)) continue;
      sharing_.shares[released.job].standing = AdmissionState::kReclaimed;
      sharing_.shares[released.job].reclaimed_for = job_;
      reservations_.Forget(released.job);
    }
  }

  const JobIndex job_;
  const Model& model_;
  Reservations& reservations_;
  Sharing& sharing_;
  Assignment& assignment_;
  const std::vector<std::int64_t> held_gpus_;  // by queue
  std::vector<Released> released_;
};

}  // namespace

bool ReclaimFor(JobIndex job, const Model& model, Reservations& reservations, Sharing& sharing) {
  return Reclaiming(job, model, reservations, sharing).Run();
}

}  // namespace pliant::planner
