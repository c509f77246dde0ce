#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"

namespace pliant::learner {

// What a person who trains alone wants to know, gathered from the lines of metrics.jsonl
// (docs/contracts.md).
class Progress {
 public:
  struct Job {
    std::uint64_t epochs = 0;
    std::uint64_t steps = 0;
    std::uint64_t batch_size = 0;
  };
  explicit Progress(const Job& job) : job_(job) {}

  void OnMetricsLine(std::string_view line);

  // "epoch 3/10  step 412/1570  [=====>              ]  loss 1.2034  …", for a terminal that shows
  // one line, redrawn.
  std::string StatusLine() const;

  std::uint64_t step() const { return step_; }
  std::uint64_t epoch() const { return epoch_; }  // from 1
  std::optional<double> loss() const { return loss_; }
  std::optional<double> samples_per_second() const { return samples_per_second_; }
  std::optional<double> test_accuracy() const { return test_accuracy_; }
  std::optional<std::uint64_t> seconds_left() const;

 private:
  const Job job_;
  std::uint64_t step_ = 0;
  std::uint64_t epoch_ = 1;
  std::optional<double> loss_;
  std::optional<double> accuracy_;  // in training
  std::optional<double> samples_per_second_;
  std::optional<double> test_accuracy_;
};

// True at most once in `every`, and never if that is zero.
class Pace {
 public:
  explicit Pace(Duration every) : every_(every) {}
  bool Due(TimePoint now);

 private:
  const Duration every_;
  std::optional<TimePoint> last_;
};

}  // namespace pliant::learner
