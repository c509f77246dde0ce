#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// Clusters and jobs, described with few words, for tables and stories about planning.
namespace pliant::planner {

inline constexpr WallTime kStart{std::chrono::sys_days{std::chrono::year{2026} / 11 / 20}};
inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

NodeView GpuNode(const std::string& name, std::int64_t gpus);
std::vector<NodeView> Nodes(int count, std::int64_t gpus_each);  // "n00", "n01", ...

// A job of team-a with priority 5000 and 32 shards, submitted at kStart; its uid is "uid-<name>".
class JobOf {
 public:
  explicit JobOf(const std::string& name, LearnerCount min = 1, LearnerCount max = 8);

  JobOf& In(const std::string& name_space);
  JobOf& Queue(const std::string& queue);
  JobOf& Priority(int priority);
  JobOf& Shards(int shards);
  JobOf& Asks(LearnerCount learners);
  JobOf& Submitted(Seconds after_start);
  JobOf& Attained(std::int64_t gpu_seconds);
  JobOf& Needs(std::int64_t cpu_millis, std::int64_t memory_bytes);
  JobOf& GpusEach(std::int64_t gpus);
  JobOf& OnlyOn(const std::string& pool);  // requires the node label pool=...
  JobOf& Avoids(const std::string& node, Seconds until);
  JobOf& Resized(Seconds after_start);
  JobOf& Started(Seconds after_start, Seconds min_runtime);
  JobOf& Suspended();
  // Adds this many learners on the node, named <job>-<n>. They count in learners_desired unless
  // they leave.
  JobOf& Has(LearnerCount learners, const std::string& node,
             LearnerState state = LearnerState::kRunning, Seconds since = Seconds{0});

  JobView view;
};

struct PlanCase {
  std::string name;
  std::vector<NodeView> nodes;
  std::vector<JobOf> jobs;
  struct Want {
    std::string job;
    LearnerCount to = 0;
    ReasonCode reason = ReasonCode::kFairShare;
    std::string sentence;                   // checked unless empty
    std::map<std::string, int> nodes = {};  // learners by node; checked unless empty
  };
  std::vector<Want> want;
  Seconds now{3600};  // after kStart
  std::vector<GpuBudget> budgets = {};
  std::vector<QueueView> queues = {};
  std::vector<PoolView> pools = {};
};

ClusterSnapshot SnapshotOf(const PlanCase& plan_case);
void ExpectPlan(const PlanCase& plan_case, const Policy& policy = {});

// For failure messages of tests.
std::string Describe(const ClusterSnapshot& snapshot);

const QueueShare& ShareOf(const Plan& plan, const std::string& queue);
const Decision& DecisionOn(const Plan& plan, const std::string& job);
// Learners by node after the decision is carried out.
std::map<std::string, int> PlacedOn(const ClusterSnapshot& snapshot, const Decision& decision);

// A cluster that carries out plans as the operator does: new pods are gated, gates open on request,
// leavers take a while to end.
class World {
 public:
  explicit World(std::vector<NodeView> nodes);

  void Submit(JobOf job);
  JobView& job(const std::string& name);
  void Finish(const std::string& name);
  void Wait(Seconds time) { snapshot.now += time; }

  Plan MakePlan() const { return planner::MakePlan(snapshot, policy); }
  void CarryOut(const Plan& plan);  // creates pods, marks leavers, opens gates
  void EndLeavers();                // the pods of leavers end
  void StartLearners();             // learners with open gates run
  // Carries out plans until nothing changes. Fails the test if that takes more than a few rounds.
  void Settle();

  std::map<std::string, LearnerCount> Sizes() const;  // of jobs with running learners

  ClusterSnapshot snapshot;
  Policy policy;

 private:
  int next_learner_ = 1000;
};

}  // namespace pliant::planner
