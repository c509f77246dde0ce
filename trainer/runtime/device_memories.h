#pragma once

#include <cstddef>

#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/memory_source.h"
#include "trainer/runtime/device_tick.h"

namespace pliant {

// Memory kept for what is written in a tick, apart from gradients: the model's buffers, and
// results.
inline constexpr std::size_t kTickBytesKept = std::size_t{64} << 20;

// The memory in which a device sums gradients, and that for its results. Each tick uses it again.
struct DeviceMemories {
  DeviceMemories(GradientDevice& on, std::size_t elements, MemorySource& sums_source)
      : device(on),
        pinned(kTickBytesKept, on.pinned_memory()),
        sums(elements, 0, sums_source),
        means(elements, 1, on.memory()) {}

  DeviceTick::Memory ForTick() {
    return {.device = device, .pinned = pinned, .sums = sums, .means = means};
  }

  GradientDevice& device;
  BytePool pinned;
  BufferPool sums;
  BufferPool means;
};

}  // namespace pliant
