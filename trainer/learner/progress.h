#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"

namespace pliant::learner {

// The progress of a training without a job, for people, collected from the lines of metrics.jsonl
// (docs/contracts.md).
class Progress {
 public:
  explicit Progress(std::uint64_t epochs) : epochs_(epochs) {}

  void OnMetricsLine(std::string_view line);

  // "epoch 3/10  step 412/1570  [=====>              ]  loss 1.2034  …", for one line of a terminal
  // that is redrawn.
  std::string StatusLine() const;

  std::uint64_t step() const { return step_; }
  std::uint64_t epoch() const { return epoch_; }  // from 1
  std::optional<double> loss() const { return loss_; }
  std::optional<double> samples_per_second() const { return samples_per_second_; }
  std::optional<double> test_accuracy() const { return test_accuracy_; }
  std::optional<std::uint64_t> seconds_left() const;

 private:
  const std::uint64_t epochs_;
  std::uint64_t step_ = 0;
  std::uint64_t total_steps_ = 0;  // both may change when the batch grows
  std::uint64_t batch_size_ = 0;
  std::uint64_t epoch_ = 1;
  std::optional<double> loss_;
  std::optional<double> accuracy_;  // in training
  std::optional<double> samples_per_second_;
  std::optional<double> test_accuracy_;
};

// Due is true at most once in `every`, and never if `every` is zero.
class Pace {
 public:
  explicit Pace(Duration every) : every_(every) {}
  bool Due(TimePoint now);

 private:
  const Duration every_;
  std::optional<TimePoint> last_;
};

}  // namespace pliant::learner
