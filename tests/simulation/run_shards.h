#pragma once

#include <utility>

#include "trainer/runtime/host_tick.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/shard_stepper.h"

namespace pliant {

// Runs a ShardStepper to the end, calling `program` on the calling thread.
inline Status RunShards(Program& program, GradientAccumulator& accumulator, BytePool& buffers,
                        const TickWork& work, TickSide::OnPart on_part, TickOutput& output) {
  TickControl control;
  HostTick side(accumulator, buffers, work, control, std::move(on_part));
  ShardStepper stepper(program, accumulator, work, control, side);
  Perform(program, stepper);
  return stepper.End(output);
}

}  // namespace pliant
