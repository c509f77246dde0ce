#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/shard_folder.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/compute.h"

namespace pliant {

// Between the thread that computes and others.
struct TickControl {
  std::atomic<bool> abandoned = false;
  std::atomic<std::size_t> begun = 0;  // of the tasks
};

// One learner's part of a tick, shard after shard. For training, `folder` has begun with the work's
// blocks and buckets, and `on_part` gets every finished bucket of one, on the thread that the
// program says it on. The model's buffers lie in memory of `buffers`. Ends early, with kCancelled,
// once abandoned. `output`, which was cleared, is what is finished, however it ends.
Status RunShards(Program& program, ShardFolder& folder, BytePool& buffers, const TickWork& work,
                 TickControl& control, const std::function<void(NodePart)>& on_part,
                 TickOutput& output);

}  // namespace pliant
