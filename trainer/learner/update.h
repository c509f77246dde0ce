#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "trainer/collective/gradient_cells.h"
#include "trainer/learner/train_spec.h"
#include "trainer/protocol/program.h"

namespace pliant::learner {

// The committed state that an update changes. It lives as long as the training.
struct UpdateState {
  struct Counters {
    std::int64_t updates = 0;              // steps taken
    std::int64_t non_finite_in_a_row = 0;  // steps up to now whose loss or gradient was not finite
  };
  std::span<float> parameters;
  std::span<const std::span<float>> optimizer;  // as StateNames
  const GradientCells* cells = nullptr;         // of the parameters
  Counters* counters = nullptr;
};

// After this many skipped steps in a row the training has failed permanently (policy skip).
inline constexpr std::int64_t kMaxSkipsInARow = 100;

// Takes one optimizer step: schedule, clipping, optimizer, and train.onNonFiniteLoss for a step
// whose reduced loss or gradient is not finite. The decision uses only values that are equal on all
// learners, so all decide alike. False: the step was skipped, and only the counters changed.
// kInvalid: the training must stop, and the message says why.
Result<bool> Update(const TrainSpec& train, std::uint64_t steps_per_epoch, const CommitTask& task,
                    const UpdateState& state);

}  // namespace pliant::learner
