#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/evaluation.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/program.h"

namespace pliant {

// Writes metrics.jsonl. Called by rank 0 only.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  // Appends one JSON object, without the end of line. Dropped if a line of `tick` or later exists:
  // a rank 0 that leaves may write after its successor.
  virtual void Append(Tick tick, std::string_view line) = 0;
  virtual void CutFrom(Tick tick) = 0;  // after a restore: drops lines of `tick` and later
};

// Sums up committed ticks into the lines of metrics.jsonl and the statistics of progress. Every
// member keeps one, so that any of them can continue as rank 0.
class MetricsAccumulator {
 public:
  struct Commit {
    Tick tick = 0;
    TickPlan plan;
    ShardSums sums;                 // over all shards
    std::uint64_t total_steps = 0;  // of the training, if its batch stays as it is
    std::uint64_t batch_size = 0;   // of a whole step
    int learners = 0;
    MembershipId membership;
    TimePoint now;
    double unix_seconds = 0;
  };

  // Returns a line when one is due: for training at most once a second and at an epoch's last step,
  // for an evaluation at its end.
  std::optional<std::string> OnCommit(const Commit& commit);

  // Call it when the state of another learner or of a checkpoint was loaded, with its running
  // evaluation.
  void Restart(const ShardSums& evaluation);
  const ShardSums& evaluation() const { return evaluation_; }

  // As of the newest line.
  std::optional<double> loss() const { return loss_; }
  std::optional<double> samples_per_second() const { return samples_per_second_; }
  // The last finished ones that it saw, by step; at most kEvaluationsKept.
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }
  // The accuracy of the newest evaluation; absent: there was none.
  std::optional<double> accuracy() const;

 private:
  std::optional<std::string> OnTrain(const Commit& commit);
  std::optional<std::string> OnEvaluate(const Commit& commit);

  ShardSums train_;              // since the last line
  double samples_measured_ = 0;  // since window_start_
  std::optional<TimePoint> window_start_;
  ShardSums evaluation_;  // of the running evaluation
  std::optional<double> loss_;
  std::optional<double> samples_per_second_;
  std::vector<Evaluation> evaluations_;
};

}  // namespace pliant
