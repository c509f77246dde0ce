#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "trainer/learner/train_spec.h"
#include "trainer/protocol/program.h"

namespace pliant::learner {

// What an update changes: committed state, as long as the training.
struct UpdateState {
  struct Counters {
    std::int64_t updates = 0;              // steps taken
    std::int64_t non_finite_in_a_row = 0;  // steps up to now whose loss or gradient was not finite
  };
  std::span<float> parameters;
  std::span<const std::span<float>> optimizer;  // as StateNames
  Counters* counters = nullptr;
};

// With skip, a training that only skips has gone wrong for good.
inline constexpr std::int64_t kMaxSkipsInARow = 100;

// Takes one optimizer step: schedule, clipping, optimizer, and what train.onNonFiniteLoss says of a
// step whose reduced loss or gradient is not finite. It decides on what all learners have in
// common, so all decide alike. False: the step was skipped, and nothing but the counters changed.
// kInvalid: the training is to stop, and the message says why.
Result<bool> Update(const TrainSpec& train, std::uint64_t steps_per_epoch, const CommitTask& task,
                    const UpdateState& state);

}  // namespace pliant::learner
