#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/planner/model.h"

namespace pliant::planner {

// So many learners of a job on a node. The first of them are those that stand there already, the
// rest are to be created.
struct Claim {
  NodeIndex node = 0;
  LearnerCount learners = 0;
  bool operator==(const Claim&) const = default;
};

// An assignment of learners to nodes that never gives a node more than its room, and grows by one
// learner at a time.
//
// Because jobs may differ in the nodes that they can use, a place for one may have to be made by
// letting another stand elsewhere. Add finds such a chain of moves if there is one (for learners of
// equal needs; differing ones may hide it), as in bipartite matching: so what a job gets does not
// depend on which nodes the jobs before it happened to take.
class Assignment {
 public:
  explicit Assignment(const Model& model);  // outlives the assignment

  LearnerCount LearnersOf(JobIndex job) const { return total_[job]; }
  std::span<const Claim> ClaimsOf(JobIndex job) const { return claims_[job]; }

  // How many more learners of the job's kind the node takes, and how many of those at once, before
  // anybody has left.
  std::int64_t SlotsOn(JobIndex job, NodeIndex node) const;
  std::int64_t FreeSlotsOn(JobIndex job, NodeIndex node) const;

  std::int64_t free_gpus() const { return free_gpus_; }
  // Whether the budget of its namespace has so many more learners of the job.
  bool IsInBudget(JobIndex job, LearnerCount learners) const;

  bool AddOn(JobIndex job, NodeIndex node);           // one learner on this node, if it fits
  bool Add(JobIndex job, LearnerCount learners = 1);  // so many somewhere, all or none

  // Nobody is added to a closed node; but one learner may still take another's place there.
  void Close(NodeIndex node) { closed_[node] = true; }
  void OpenAll();

 private:
  struct NodeUse {
    Resources taken;
    std::int64_t fresh_gpus = 0;  // of those who do not hold their GPUs yet
    std::vector<JobIndex> jobs;   // with a claim here, in order of arrival
  };
  struct Change {
    JobIndex job = 0;
    NodeIndex node = 0;
    bool was_put = false;  // otherwise taken
  };
  enum class Migration { kNever, kAllowed };  // of learners that hold their GPUs

  LearnerCount LearnersOn(JobIndex job, NodeIndex node) const;
  bool WouldStand(JobIndex job, NodeIndex node) const;
  bool FitsOn(JobIndex job, NodeIndex node) const;
  bool FitsInsteadOf(JobIndex mover, JobIndex leaver, NodeIndex node) const;
  bool LacksHeld(JobIndex job) const;
  void Put(JobIndex job, NodeIndex node);
  void Take(JobIndex job, NodeIndex node);
  bool AddOne(JobIndex job);
  void Undo();
  void ResetSearchCache();
  bool AddByMoving(JobIndex job, Migration migration);

  const Model& model_;
  std::vector<NodeUse> uses_;               // by node
  std::vector<std::vector<Claim>> claims_;  // by job
  std::vector<LearnerCount> total_;         // by job
  std::vector<char> closed_;                // by node
  std::vector<std::int64_t> budget_left_;   // GPUs, by budget
  std::int64_t free_gpus_ = 0;
  std::int64_t overcommitted_gpus_ =
      0;  // held by learners that may stay, but where nothing is granted anew
  std::vector<Change> journal_;  // since the last Add began
  // By fit. Nodes before the cursor are full for it; an exhausted fit gets nothing more, unless
  // somebody goes.
  std::vector<std::size_t> cursor_;
  std::vector<char> exhausted_;
};

}  // namespace pliant::planner
