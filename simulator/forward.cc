#include "simulator/forward.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "operator/replay/text_table.h"
#include "simulator/events/curve_work.h"
#include "simulator/report/markup.h"

namespace pliant::simulator {
namespace {

using planner::JobView;
using planner::LearnerState;
using planner::LearnerView;
using planner::WallTime;

// Jobs whose rest is unknown never end.
constexpr std::int64_t kMaxTime = 366 * std::int64_t{86'400'000};

// The same time, in a run that begins when the snapshot was made.
class Shift {
 public:
  explicit Shift(WallTime now) : by_(kBegin - now) {}
  void Move(WallTime& time) const { time += by_; }
  void Move(std::optional<WallTime>& time) const {
    if (time) *time += by_;
  }

 private:
  WallTime::duration by_;
};

// `index`: in the job. Learners that the run creates have other names.
void Prepare(LearnerView& learner, std::size_t index, const Shift& shift) {
  learner.name = Format("present/{}", index);
  shift.Move(learner.created);
  shift.Move(learner.since);
  learner.refused = false;
  // It is about to become a member.
  if (learner.state == LearnerState::kRunning && !learner.member) {
    learner.state = LearnerState::kStarting;
  }
}

JobView Prepared(JobView view, const std::set<std::string>& nodes, const Shift& shift) {
  shift.Move(view.submitted);
  shift.Move(view.waiting.since);
  shift.Move(view.waiting.attained_at);
  shift.Move(view.share.started);
  shift.Move(view.share.resized);
  shift.Move(view.share.below_minimum_since);
  if (view.cap) shift.Move(view.cap->until);
  for (planner::AvoidedNode& avoided : view.avoided) shift.Move(avoided.until);
  view.refused_since.reset();
  view.training.remaining_seconds.reset();
  std::erase_if(view.learners,
                [&](const LearnerView& learner) { return !nodes.contains(learner.node); });
  for (std::size_t at = 0; at < view.learners.size(); ++at) Prepare(view.learners[at], at, shift);
  return view;
}

std::optional<double> SecondsOf(const JobRecord& job) {
  if (!job.completed) return std::nullopt;
  return static_cast<double>(*job.completed) / 1000;
}

std::string ShownTime(std::optional<double> seconds) {
  return seconds ? ShownSeconds(*seconds) : "-";
}

std::string ShownChange(std::optional<double> before, std::optional<double> after) {
  if (!before || !after) return "-";
  const double change = *after - *before;
  if (change == 0) return "0 s";
  return (change > 0 ? "+" : "-") + ShownSeconds(change > 0 ? change : -change);
}

}  // namespace

RunInput PresentInput(const planner::ClusterSnapshot& snapshot) {
  const Shift shift(snapshot.now);
  RunInput input{.nodes = snapshot.nodes, .queues = snapshot.queues, .pools = snapshot.pools};
  std::set<std::string> nodes;
  for (const planner::NodeView& node : snapshot.nodes) nodes.insert(node.name);
  for (const JobView& from : snapshot.jobs) {
    if (from.finished) continue;
    std::optional<double> alone;
    if (from.training.alone_seconds) alone = static_cast<double>(*from.training.alone_seconds);
    input.jobs.push_back(
        {.view = Prepared(from, nodes, shift),
         .is_present = true,
         .work = std::make_shared<CurveWork>(from.training.speeds, alone, from.max_learners)});
  }
  return input;
}

Result<std::string> Forward(const replay::DebugSnapshot& debug,
                            const planner::ClusterSnapshot& edited, WhatIfJobs jobs) {
  const auto is_known = [](const JobView& job) {
    return !job.finished && job.training.alone_seconds;
  };
  if (std::ranges::none_of(debug.snapshot.jobs, is_known)) {
    return Invalid(
        "no job has aloneSeconds, so nobody knows when one ends; leave out --forward, or write the "
        "seconds that a job would still take with one learner into the file");
  }
  RunOptions options{.policy = debug.policy};
  options.max_time = kMaxTime;
  const RunInput input = PresentInput(debug.snapshot);
  const RunRecord before = RunEvents(input, options);
  const RunRecord after = RunEvents(PresentInput(edited), options);
  std::vector<std::vector<std::string>> rows = {{"JOB", "COMPLETES IN", "WITH CHANGES", "CHANGE"}};
  for (std::size_t at = 0; at < before.jobs.size(); ++at) {
    const auto was = SecondsOf(before.jobs[at]);
    const auto is = SecondsOf(after.jobs[at]);
    if (jobs == WhatIfJobs::kChanged && was == is) continue;
    rows.push_back(
        {ToString(input.jobs[at].view.key), ShownTime(was), ShownTime(is), ShownChange(was, is)});
  }
  if (rows.size() == 1) return "no completion time changes\n";
  return replay::TextTable(rows);
}

}  // namespace pliant::simulator
