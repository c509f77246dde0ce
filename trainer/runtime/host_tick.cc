#include "trainer/runtime/host_tick.h"

#include <utility>

#include "trainer/checkpoint/checksum.h"
#include "trainer/protocol/spot_check.h"

namespace pliant {

HostTick::HostTick(GradientAccumulator& accumulator, BytePool& buffers, const TickWork& work,
                   TickControl& control, OnPart on_part)
    : accumulator_(accumulator),
      buffers_(buffers),
      work_(work),
      control_(control),
      on_part_(std::move(on_part)) {}

void HostTick::HandOut(const HeldNode& node, std::uint32_t bucket) {
  on_part_({.node = node, .bucket = bucket});
}

void HostTick::Check(std::size_t, std::span<const float> gradient,
                     std::span<const std::byte> buffers, const ShardSums& sums,
                     TickOutput& output) {
  output.checked_shard = DigestOfShard(ChecksumOf(std::as_bytes(gradient)), buffers, sums);
}

void HostTick::OnFinished(std::size_t task, ShardResult& result) {
  if (work_.kind == TickKind::kTrain && work_.measure)
    result.gradient_square = accumulator_.leaf_square();
  control_.done.store(task + 1, std::memory_order_relaxed);
}

void HostTick::End(bool, TickOutput& output) {
  if (work_.kind == TickKind::kTrain) accumulator_.CopySums(output.nodes);
}

}  // namespace pliant
