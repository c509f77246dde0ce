#pragma once

#include <atomic>
#include <functional>

#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/shard_folder.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/program.h"

namespace pliant {

// One learner's part of a tick, shard after shard. For training, `folder` has begun with the work's
// blocks and buckets, and `on_part` gets every finished bucket of one, on the thread that the
// program says it on. The model's buffers lie in memory of `buffers`. Ends early, with kCancelled,
// once `abandoned`. `output`, which was cleared, is what is finished, however it ends.
Status RunShards(Program& program, ShardFolder& folder, BytePool& buffers, const TickWork& work,
                 const std::atomic<bool>& abandoned, const std::function<void(NodePart)>& on_part,
                 TickOutput& output);

}  // namespace pliant
