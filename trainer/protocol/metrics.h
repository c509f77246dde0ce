#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/program.h"

namespace pliant {

// Where metrics.jsonl goes. Called by rank 0 only.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  // One JSON object, without the line's end. Dropped when there is one of `tick` or later: a rank 0
  // that leaves may come to it after its successor.
  virtual void Append(Tick tick, std::string_view line) = 0;
  virtual void CutFrom(Tick tick) = 0;  // after a restore: lines of `tick` and later go
};

// Sums up committed ticks to the lines of metrics.jsonl and to the figures of progress. Every
// member keeps one, so that any of them can go on as rank 0.
class MetricsAccumulator {
 public:
  struct Commit {
    Tick tick = 0;
    TickPlan plan;
    ShardSums sums;  // over all shards
    int learners = 0;
    MembershipId membership;
    TimePoint now;
    double unix_seconds = 0;
  };

  // A line, when one is due: of training at most once a second and at an epoch's last step, of an
  // evaluation at its end.
  std::optional<std::string> OnCommit(const Commit& commit);

  // The state of another learner, or of a checkpoint, was taken over, with its running evaluation.
  void Restart(const ShardSums& evaluation);
  const ShardSums& evaluation() const { return evaluation_; }

  // As of the newest line; accuracy of the newest finished evaluation.
  std::optional<double> loss() const { return loss_; }
  std::optional<double> samples_per_second() const { return samples_per_second_; }
  std::optional<double> accuracy() const { return accuracy_; }
  std::optional<std::uint64_t> evaluated_epoch() const { return evaluated_epoch_; }

 private:
  std::optional<std::string> OnTrain(const Commit& commit);
  std::optional<std::string> OnEvaluate(const Commit& commit);

  ShardSums train_;              // since the last line
  double samples_measured_ = 0;  // since window_start_
  std::optional<TimePoint> window_start_;
  ShardSums evaluation_;  // of the running one
  std::optional<double> loss_;
  std::optional<double> samples_per_second_;
  std::optional<double> accuracy_;
  std::optional<std::uint64_t> evaluated_epoch_;
};

}  // namespace pliant
