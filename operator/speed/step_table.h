#pragma once

#include <cstddef>
#include <vector>

#include "operator/speed/step_model.h"

namespace pliant::speed {

// Measurements of a training's steps, by size. Noise of the measurements changes nothing in
// it: a size counts with the value that it had when it was last news.
class StepTable {
 public:
  // Returns whether steps() has changed: the size is new, or its time differs by kNewsPercent from
  // the one that counts.
  bool Add(const MeasuredStep& step);
  // The sizes that count, by nodes, learners and work.
  const std::vector<MeasuredStep>& steps() const { return steps_; }

  static constexpr double kNewsPercent = 10;
  // Beyond this number of sizes the one that was measured least recently is dropped.
  static constexpr std::size_t kMaxSizes = 64;

 private:
  struct Mean {
    double step_seconds = 0;
    double compute_seconds = 0;
    int count = 0;
    std::size_t last = 0;  // when it was last measured, in measurements
  };
  void DropOldest();

  std::vector<MeasuredStep> steps_;
  std::vector<Mean> means_;  // of each size: of its last measurements, the newer ones weigh more
  std::size_t measurements_ = 0;
};

}  // namespace pliant::speed
