#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/planner/assignment.h"
#include "operator/planner/model.h"
#include "operator/planner/plan.h"

namespace pliant::planner {

// GPUs that are kept for jobs which cannot have their whole minimum yet. Each holds as many
// learners as fit, at most its minimum: so nothing is kept from others that the job itself could
// not take. Only a job that also keeps GPUs idle may close one node, so that its next learner,
// which may need all GPUs of a node, finds room there in the end.
class Reservations {
 public:
  // Both outlive it.
  Reservations(const Model& model, const Policy& policy, Assignment& assignment);

  // Assigns learners to the job while it lacks some of its minimum and its queue has no more than
  // `max_queue_gpus`. Returns the GPUs that the job has then.
  std::int64_t Hold(JobIndex job, std::int64_t max_queue_gpus);
  // The same, and closes a node if the job still lacks some.
  std::int64_t HoldAndClose(JobIndex job, std::int64_t max_queue_gpus);
  // Keeps the part of its queue's limit that the job lacks from other jobs of the queue. No GPU is
  // kept: the job cannot take one before others of its queue have left.
  void HoldLimit(JobIndex job);
  std::int64_t HeldOfLimit(QueueIndex queue) const { return of_limit_[queue]; }
  // The job has lost all learners, also those that were held for it.
  void Forget(JobIndex job);
  // GPUs held for jobs that wait, or lack some of their minimum, by queue.
  std::vector<std::int64_t> HeldByQueue() const;
  void ReleaseAll();

  // Whether a job that waits also keeps GPUs idle now. It does so for a while, then not for a
  // while, and each time twice as long: so a large job gets its GPUs in the end, whatever comes
  // after it. `at_once`: the first time begins when it begins to wait.
  bool KeepsIdleGpus(JobIndex job, bool at_once);
  const std::optional<WallTime>& again_at() const { return again_at_; }  // when that changes

  // Whether a job that was marked waits for a node that this one can use.
  void MarkNodesOf(JobIndex job);
  bool IsBehind(JobIndex job);
  void ForgetMarks();

 private:
  struct Held {
    JobIndex job = 0;
    LearnerCount learners = 0;
  };

  const Model& model_;
  const Policy& policy_;
  Assignment& assignment_;
  std::vector<Held> held_;
  std::vector<std::int64_t> of_limit_;  // GPUs, by queue
  std::optional<WallTime> again_at_;
  std::vector<char> node_is_marked_;
  std::vector<char> fit_is_marked_;
  std::vector<std::optional<bool>> fit_is_behind_;  // computed on demand
};

}  // namespace pliant::planner
