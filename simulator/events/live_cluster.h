#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"
#include "simulator/events/event_engine.h"
#include "simulator/events/event_queue.h"
#include "simulator/events/run_options.h"
#include "simulator/events/training_clock.h"
#include "simulator/model/run_record.h"

namespace pliant::simulator {

struct Arrival {
  std::size_t job = 0;  // in the input
};
struct LearnerStarted {
  std::size_t job = 0;
  std::string learner;
};
struct LearnerLeft {
  std::size_t job = 0;
  std::string learner;
};
struct PhaseEnd {
  std::size_t job = 0;
  std::uint64_t version = 0;  // of its clock
};
struct Measured {
  std::size_t job = 0;
  std::uint64_t size_version = 0;  // of its clock
};
struct Replan {};
struct Change {
  const ClusterChange* change = nullptr;
};
struct RandomLoss {
  std::size_t node = 0;
};
struct NodeBack {
  std::size_t node = 0;
};
using Event = std::variant<Arrival, LearnerStarted, LearnerLeft, PhaseEnd, Measured, Replan, Change,
                           RandomLoss, NodeBack>;

// A job from its arrival on.
struct LiveJob {
  const SimulatedJob* spec = nullptr;
  JobRecord* record = nullptr;
  TrainingClock clock;
  int learners_created = 0;
  double attained_gpu_seconds = 0;     // halved with every half-life
  std::int64_t counted_to = 0;         // its GPU time
  int gpus = 0;                        // that it holds
  std::uint64_t measured_version = 0;  // of its clock: the last size that is or will be measured
};

// The jobs and pods of a run, and the life of each: what the API server, the kubelets and the
// operator's own objects are in a cluster. Whatever takes time becomes an event.
class LiveCluster {
 public:
  // All outlive it.
  LiveCluster(const RunInput& input, const RunOptions& options, EventQueue<Event>& events,
              std::vector<JobRecord>& records);

  void SetTime(std::int64_t now);
  const planner::ClusterSnapshot& snapshot() const { return snapshot_; }
  planner::NodeView* NodeNamed(const std::string& name);
  planner::NodeView& NodeAt(std::size_t index) { return snapshot_.nodes[index]; }
  // The first job of that name; null: it has not arrived, or has ended and holds nothing.
  planner::JobView* JobNamed(const std::string& name);
  planner::JobView* ViewOf(const LiveJob& job);
  LiveJob& job(std::size_t index) { return live_[index]; }
  LiveJob& JobOf(const planner::JobView& view) { return live_[job_index_.at(view.key)]; }
  std::size_t ended() const { return ended_; }  // jobs

  void Arrive(std::size_t job);
  // Adds a step of the job to what was learned. Returns the application's jobs that are there, or
  // none if it was known.
  std::vector<planner::JobView*> Learn(const LiveJob& job);
  // By the costs of resizes that the options give.
  int HoldPercentOf(const planner::JobView& view) const;
  // Brings up to date what the operator reads for each plan, then carries the plan out.
  void Refresh();
  void CarryOut(const planner::Plan& plan);
  void Start(const LearnerStarted& event);
  void Remove(const LearnerLeft& event);
  void End(LiveJob& job);  // it is done, or somebody ended it
  // The node is lost, with all learners on it.
  void Lose(planner::NodeView& node);
  // The clock has a new rate, or the job holds other GPUs.
  void Follow(LiveJob& job);
  void Count(LiveJob& job);  // GPU time and training until now

 private:
  bool restarts() const { return std::holds_alternative<Restarting>(options_.resizing); }
  std::int64_t PauseOfResize() const;
  std::size_t IndexOf(const LiveJob& job) const {
    return static_cast<std::size_t>(&job - live_.data());
  }
  planner::Seconds HalfLifeOf(const LiveJob& job) const;
  void Adopt(LiveJob& job);
  void Update(LiveJob& job);
  void SetShare(planner::JobView& view, const planner::Decision& decision);
  void Create(planner::JobView& view, LiveJob& job, planner::Decision& decision);
  void Drop(planner::JobView& view, LiveJob& job, const planner::Decision& decision);
  void Leave(planner::LearnerView& learner, std::size_t job, std::int64_t after);
  void OpenGates();
  void Pause(LiveJob& job, std::int64_t time);
  void RemoveIfGone(const LiveJob& job);

  const RunOptions& options_;
  EventQueue<Event>& events_;
  planner::ClusterSnapshot snapshot_;  // its jobs by key
  std::map<std::string, std::size_t> node_index_;
  std::map<planner::JobKey, std::size_t> job_index_;  // of live_
  std::map<std::string, LearnedSteps> learned_;       // by application
  std::vector<LiveJob> live_;                         // in the order of the input
  // The decisions of the last plan, whose `keep` also has the learners that it created.
  std::vector<planner::Decision> decisions_;
  std::mt19937_64 random_;  // noise of measurements
  std::size_t ended_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace pliant::simulator
