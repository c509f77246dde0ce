#pragma once

#include <utility>

#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/shard_stepper.h"

namespace pliant {

// Runs a ShardStepper to the end, calling `program` on the calling thread.
inline Status RunShards(Program& program, GradientAccumulator& accumulator, BytePool& buffers,
                        const TickWork& work, ShardStepper::OnPart on_part, TickOutput& output) {
  TickControl control;
  ShardStepper stepper(program, accumulator, buffers, work, control, std::move(on_part));
  Perform(program, stepper);
  return stepper.End(output);
}

}  // namespace pliant
