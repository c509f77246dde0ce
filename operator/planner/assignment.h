#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "operator/planner/model.h"

namespace pliant::planner {

// A number of learners of one job on one node. The first ones are those already there, the rest are
// to be created.
struct Claim {
  NodeIndex node = 0;
  LearnerCount learners = 0;
  bool operator==(const Claim&) const = default;
};

// An assignment of learners to nodes that never exceeds a node's room and grows by one learner at a
// time.
//
// Jobs may differ in the nodes that they can use, so placing one job may require moving another.
// Add finds such a chain of moves if there is one, as in bipartite matching (for learners of equal
// needs; with different needs it may miss one). So what a job gets does not depend on which nodes
// the jobs before it took. For a learner that is larger than others, Add moves several of them
// together.
class Assignment {
 public:
  explicit Assignment(const Model& model);  // `model` outlives the assignment

  // Job::fit until UseFit is called.
  const Fit& FitOf(JobIndex job) const { return model_.fits[fit_[job]]; }
  int FitIndexOf(JobIndex job) const { return fit_[job]; }
  void UseFit(JobIndex job, int fit);  // the job has no learners

  LearnerCount LearnersOf(JobIndex job) const { return total_[job]; }
  std::span<const Claim> ClaimsOf(JobIndex job) const { return claims_[job]; }

  // How many more learners like the job's fit on the node; and how many of those fit at once,
  // before any present learner has left.
  std::int64_t SlotsOn(JobIndex job, NodeIndex node) const;
  std::int64_t FreeSlotsOn(JobIndex job, NodeIndex node) const;

  std::int64_t free_gpus() const { return free_gpus_; }
  // Whether Add found no place for a learner although there were enough free GPUs.
  bool missed_a_place() const { return missed_a_place_; }
  std::int64_t FreeGpusOn(NodeIndex node) const {
    return model_.nodes[node].room.gpus - uses_[node].taken.gpus;
  }
  std::int64_t GpusOfQueue(QueueIndex queue) const { return queue_gpus_[queue]; }
  // Whether the budget of its namespace allows `learners` more learners of the job.
  bool IsInBudget(JobIndex job, LearnerCount learners) const;
  // GPUs that each budget still allows.
  const std::vector<std::int64_t>& budget_left() const { return budget_left_; }

  bool AddOn(JobIndex job, NodeIndex node);           // adds one learner on this node, if it fits
  bool Add(JobIndex job, LearnerCount learners = 1);  // adds `learners` on any nodes, all or none
  // How many learners Add could add, up to `most`.
  LearnerCount LearnersThatFit(JobIndex job, LearnerCount most);
  // Removes learners, first of all those that do not hold GPUs yet. The job has at least
  // `learners`.
  void Remove(JobIndex job, LearnerCount learners);

  // No learner is added to a closed node, but one may still replace another there.
  void Close(NodeIndex node) { closed_[node] = true; }
  void OpenAll();

  // A moment to which the assignment can return. It is valid until the assignment returns to an
  // earlier one.
  using Moment = std::size_t;
  Moment Now() const { return journal_.size(); }
  void ReturnTo(Moment moment);

 private:
  struct NodeUse {
    Resources taken;
    std::int64_t fresh_gpus = 0;  // of learners that do not hold their GPUs yet
    std::vector<JobIndex> jobs;   // with a claim here, in order of arrival
  };
  struct Change {
    JobIndex job = 0;
    NodeIndex node = 0;
    bool was_put = false;  // otherwise taken
  };
  // By fit. Nodes before the cursor are full for it. An exhausted fit gets no more learners unless
  // one is removed.
  struct SearchCache {
    explicit SearchCache(std::size_t fits) : cursor(fits), exhausted(fits) {}
    std::vector<std::size_t> cursor;
    std::vector<char> exhausted;
  };
  // Tries changes of several learners: unless they are kept, all is as before, the cache included.
  template <typename Changes>
  bool Try(const Changes& changes);
  enum class Migration { kNever, kAllowed };  // whether learners that hold their GPUs may move

  LearnerCount LearnersOn(JobIndex job, NodeIndex node) const;
  bool WouldStand(JobIndex job, NodeIndex node) const;
  bool FitsOn(JobIndex job, NodeIndex node) const;
  bool FitsInsteadOf(JobIndex mover, JobIndex leaver, NodeIndex node) const;
  bool LacksHeld(JobIndex job) const;
  void Put(JobIndex job, NodeIndex node);
  void Take(JobIndex job, NodeIndex node);
  bool AddWhereHeld(JobIndex job);  // a learner that it has already
  bool AddAnywhere(JobIndex job);   // on a node with room
  bool AddWithoutMoving(JobIndex job);
  bool AddOne(JobIndex job);
  bool FindPlace(JobIndex job);  // for one more learner
  void ResetSearchCache();
  enum class Nodes { kAny, kHeld };  // where the job gets its learner
  bool AddByMoving(JobIndex job, Migration migration, Nodes nodes = Nodes::kAny);
  bool AddByClearing(JobIndex job);
  bool Clear(NodeIndex node, JobIndex job);
  std::optional<JobIndex> WhoMayLeave(NodeIndex node, JobIndex job) const;

  const Model& model_;
  std::vector<NodeUse> uses_;               // by node
  std::vector<std::vector<Claim>> claims_;  // by job
  std::vector<LearnerCount> total_;         // by job
  std::vector<int> fit_;                    // by job
  std::vector<std::int64_t> queue_gpus_;    // by queue
  std::vector<std::int64_t> budget_left_;   // GPUs, by budget
  std::vector<char> closed_;                // by node
  std::int64_t free_gpus_ = 0;
  std::int64_t overcommitted_gpus_ = 0;  // held by learners that may stay, beyond their node's room
  bool missed_a_place_ = false;
  std::vector<Change> journal_;  // all changes so far
  SearchCache cache_;
};

}  // namespace pliant::planner
