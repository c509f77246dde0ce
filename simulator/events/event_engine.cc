#include "simulator/events/event_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <variant>

#include "base/overloaded.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/plan.h"
#include "simulator/events/event_queue.h"
#include "simulator/events/live_cluster.h"

namespace pliant::simulator {
namespace {

// The planner gets a new curve once a speed has changed by this much; else each epoch would be
// news.
constexpr int kNewsPercent = 10;

// Whether some speed differs so much that a planner should know.
bool IsNews(const planner::SpeedCurve& known, const planner::SpeedCurve& now) {
  if (known.size() != now.size()) return true;
  for (std::size_t index = 0; index < now.size(); ++index) {
    const std::int64_t change = std::abs(std::int64_t{known[index]} - now[index]);
    if (100 * change >= std::int64_t{kNewsPercent} * std::max(known[index], 1)) return true;
  }
  return false;
}

std::vector<JobRecord> EmptyRecords(const RunInput& input) {
  std::vector<JobRecord> records;
  for (const SimulatedJob& job : input.jobs) {
    records.push_back({.name = job.view.key.name,
                       .application = job.application,
                       .queue = job.view.queue,
                       .submitted = job.submitted,
                       .deadline = job.deadline});
  }
  return records;
}

class Engine {
 public:
  Engine(const RunInput& input, const RunOptions& options)
      : options_(options),
        record_{.jobs = EmptyRecords(input)},
        cluster_(input, options, events_, record_.jobs),
        jobs_(input.jobs.size()) {
    for (const planner::NodeView& node : input.nodes) {
      record_.gpus += static_cast<int>(node.allocatable.gpus);
    }
    for (std::size_t job = 0; job < jobs_; ++job) {
      events_.Add(input.jobs[job].submitted, Arrival{job});
    }
    for (const ClusterChange& change : input.changes) events_.Add(change.at, Change{&change});
    if (!options.failures) return;
    random_.seed(options.seed);
    for (std::size_t node = 0; node < input.nodes.size(); ++node) LoseLater(node);
  }

  RunRecord Run() {
    while (!events_.empty() && cluster_.ended() < jobs_ &&
           events_.next_time() <= options_.max_time) {
      now_ = events_.next_time();
      cluster_.SetTime(now_);
      std::visit([this](const auto& event) { On(event); }, events_.Take());
    }
    for (std::size_t index = 0; index < jobs_; ++index) {
      LiveJob& job = cluster_.job(index);
      cluster_.Count(job);
      if (job.gpus > 0) job.record->sizes.push_back({.at = now_});
      job.record->started = job.clock.started();
      job.record->useful_gpu_seconds =
          job.clock.useful_seconds() * static_cast<double>(job.spec->view.needs.resources.gpus);
      job.record->lost_seconds = job.clock.lost_seconds();
    }
    std::map<std::string_view, const planner::Decision*> last;
    for (const planner::Decision& decision : last_plan_.decisions) {
      last[decision.job.name] = &decision;
    }
    for (JobRecord& job : record_.jobs) {
      const auto decision = last.find(job.name);
      if (!job.completed && decision != last.end()) job.undone = decision->second->reason.sentence;
    }
    record_.end = now_;
    return std::move(record_);
  }

 private:
  void RequestPlan(std::int64_t at) {
    if (options_.plan_every > 0) {
      at = (at + options_.plan_every - 1) / options_.plan_every * options_.plan_every;
    }
    if (plan_at_ && *plan_at_ <= at) return;
    plan_at_ = at;
    events_.Add(at, Replan{});
  }
  void RequestPlan() { RequestPlan(now_ + (options_.plan_every > 0 ? 0 : options_.plan_after)); }

  void On(const Arrival& event) {
    cluster_.Arrive(event.job);
    RequestPlan();
  }

  void On(const Replan&) {
    if (plan_at_ != now_) return;  // another one was requested for an earlier time
    plan_at_.reset();
    cluster_.Refresh();
    last_plan_ = options_.make_plan
                     ? options_.make_plan(cluster_.snapshot(), options_.policy, memory_)
                     : planner::MakePlan(cluster_.snapshot(), options_.policy, memory_);
    ++record_.plans;
    cluster_.CarryOut(last_plan_);
    const std::optional<planner::WallTime>& again_at = last_plan_.again_at;
    if (again_at) RequestPlan(std::max(FromWall(*again_at), now_ + 1));
  }

  void On(const LearnerStarted& event) { cluster_.Start(event); }
  void On(const LearnerLeft& event) { cluster_.Remove(event); }

  void On(const PhaseEnd& event) {
    LiveJob& job = cluster_.job(event.job);
    if (event.version != job.clock.version()) return;
    cluster_.Count(job);
    job.clock.EndPhase();
    if (job.clock.is_done()) {
      job.record->completed = now_;
      cluster_.End(job);
      return RequestPlan();
    }
    cluster_.Follow(job);
    if (options_.speeds != KnownSpeeds::kNone) TellSpeeds(*cluster_.ViewOf(job));
  }

  void On(const Measured& event) {
    const LiveJob& job = cluster_.job(event.job);
    if (event.size_version != job.clock.size_version()) return;
    for (planner::JobView* const view : cluster_.Learn(job)) TellSpeeds(*view);
  }

  void TellSpeeds(planner::JobView& view) {
    planner::SpeedCurve speeds = cluster_.JobOf(view).clock.Speeds();
    if (!IsNews(view.training.speeds, speeds)) return;
    view.training.speeds = std::move(speeds);
    RequestPlan();
  }

  void On(const Change& event) {
    std::visit(Overloaded{[this](const NodeSchedulable& change) {
                            if (auto* const node = cluster_.NodeNamed(change.node)) {
                              node->schedulable = change.schedulable;
                            }
                          },
                          [this](const NodeLost& change) {
                            if (auto* const node = cluster_.NodeNamed(change.node)) {
                              Lose(*node, change.for_time);
                            }
                          },
                          [this](const JobPriority& change) {
                            if (auto* const view = cluster_.JobNamed(change.job)) {
                              view->priority = change.priority;
                            }
                          },
                          [this](const JobEnds& change) {
                            auto* const view = cluster_.JobNamed(change.job);
                            if (view != nullptr && !view->finished)
                              cluster_.End(cluster_.JobOf(*view));
                          }},
               event.change->what);
    RequestPlan();
  }

  void LoseLater(std::size_t node) {
    const double mean = static_cast<double>(options_.failures->mean_between);
    const double wait = -std::log(DrawUniform(random_)) * mean;
    events_.Add(now_ + static_cast<std::int64_t>(wait) + 1, RandomLoss{node});
  }

  void On(const RandomLoss& event) {
    planner::NodeView& node = cluster_.NodeAt(event.node);
    if (node.ready) Lose(node, options_.failures->repair);
    LoseLater(event.node);
  }

  void On(const NodeBack& event) {
    cluster_.NodeAt(event.node).ready = true;
    RequestPlan();
  }

  void Lose(planner::NodeView& node, std::int64_t for_time) {
    cluster_.Lose(node);
    const auto index = static_cast<std::size_t>(&node - &cluster_.NodeAt(0));
    events_.Add(now_ + for_time, NodeBack{index});
    RequestPlan();
  }

  const RunOptions& options_;
  RunRecord record_;
  planner::Plan last_plan_;
  EventQueue<Event> events_;
  LiveCluster cluster_;
  const std::size_t jobs_;
  planner::FitMemory memory_;
  std::optional<std::int64_t> plan_at_;
  std::mt19937_64 random_;
  std::int64_t now_ = 0;
};

}  // namespace

RunRecord RunEvents(const RunInput& input, const RunOptions& options) {
  return Engine(input, options).Run();
}

}  // namespace pliant::simulator
