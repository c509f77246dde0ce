#include "simulator/report/run_timeline.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "operator/history/encode.h"
#include "operator/history/timeline.h"
#include "operator/history/values.h"
#include "simulator/report/gpu_time.h"
#include "simulator/report/markup.h"

namespace pliant::simulator {
namespace {

using history::Field;
using history::Kind;
using history::Subject;
using history::Values;
using history::WallTime;

constexpr const char* kNode = "cluster";

struct Step {
  std::int64_t at = 0;
  Subject subject;
  std::optional<Values> values;  // nullopt: it is gone
};

WallTime TimeOf(std::int64_t milliseconds) {
  return WallTime(std::chrono::milliseconds(milliseconds));
}

// Names differ, also those that a file repeats or that differ only behind the cut.
class JobNames {
 public:
  std::string Of(const JobRecord& job) {
    const std::string shown = ShownName(job.name, kMaxLineBytes);
    std::string name = shown;
    for (std::size_t copy = 2; !used_.insert(name).second; ++copy)
      name = Format("{} ({})", shown, copy);
    return name;
  }

 private:
  std::set<std::string> used_;
};

// Steps of one job, by rising time.
class JobSteps {
 public:
  JobSteps(const JobRecord& job, std::string name, std::vector<Step>& steps)
      : name_(std::move(name)), steps_(steps) {
    values_ = {{Field::kPhase, std::string("Queued")}, {Field::kCreated, job.submitted}};
    if (!job.queue.empty()) values_[Field::kQueue] = ShownName(job.queue, kMaxLineBytes);
    if (!job.application.empty()) {
      values_[Field::kReason] = "application " + ShownName(job.application, kMaxLineBytes);
    }
    Put(job.submitted);
  }

  void Hold(std::int64_t at, std::int64_t gpus) {
    Enter(at, "Running");
    steps_.push_back({at, Held(), Values{{Field::kGpus, gpus}}});
  }

  void Release(std::int64_t at) { steps_.push_back({at, Held(), std::nullopt}); }

  void Wait(std::int64_t at) { Enter(at, "Queued"); }

  void Complete(std::int64_t at) {
    values_[Field::kEnd] = at;
    Enter(at, "Succeeded");
  }

 private:
  Subject Held() const { return {.kind = Kind::kHeld, .name = name_, .node = kNode}; }

  void Enter(std::int64_t at, std::string_view phase) {
    values_[Field::kPhase] = std::string(phase);
    Put(at);
  }

  void Put(std::int64_t at) {
    steps_.push_back({at, {.kind = Kind::kJob, .name = name_, .node = ""}, values_});
  }

  const std::string name_;
  std::vector<Step>& steps_;
  Values values_;
};

void AddJob(const RunRecord& run, const JobRecord& job, std::string name,
            std::vector<Step>& steps) {
  JobSteps mine(job, std::move(name), steps);
  const std::vector<Holding> holdings = HoldingsOf(run, job);
  for (std::size_t at = 0; at < holdings.size(); ++at) {
    const Holding& holding = holdings[at];
    mine.Hold(holding.begin, holding.gpus);
    const bool continues = at + 1 < holdings.size() && holdings[at + 1].begin == holding.end;
    // A job that is not done holds at the end of the run what it held before.
    if (continues || (holding.end == run.end && !job.completed)) continue;
    mine.Release(holding.end);
    if (job.completed != holding.end) mine.Wait(holding.end);
  }
  if (job.completed) mine.Complete(*job.completed);
}

}  // namespace

std::optional<std::string> TimelineOf(const RunRecord& run) {
  const std::int64_t span = SpanOf(run);
  if (span <= 0) return std::nullopt;
  const std::int64_t begin = run.end - span;
  std::vector<Step> steps = {{begin,
                              {.kind = Kind::kNode, .name = kNode, .node = ""},
                              Values{{Field::kGpus, std::int64_t{run.gpus}}}}};
  JobNames names;
  for (const JobRecord& job : run.jobs) AddJob(run, job, names.Of(job), steps);
  std::ranges::stable_sort(steps, {}, &Step::at);
  history::Timeline timeline("simulation");
  for (const Step& step : steps) timeline.Append(TimeOf(step.at), step.subject, step.values);
  if (timeline.dropped() > 0 || timeline.refused() > 0) return std::nullopt;
  return history::EncodeTimeline(timeline, TimeOf(begin), TimeOf(run.end), TimeOf(begin));
}

}  // namespace pliant::simulator
