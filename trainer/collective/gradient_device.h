#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "trainer/collective/gradient_arithmetic.h"
#include "trainer/collective/memory_source.h"
#include "trainer/collective/tree_levels.h"

namespace pliant {

class GradientRounds;

// A device that has a program's gradients. All work is queued in the order of the calls, behind
// what the program has queued before; no call waits for it. Once a call fails, or the device does,
// the contents of memory are undefined, and Then says so.
//
// The program's thread queues. Memory that queued work uses stays until Then has called.
class GradientDevice : public GradientArithmetic {
 public:
  // The device's memory. Throws std::bad_alloc if there is none left.
  virtual MemorySource& memory() = 0;
  // Host memory that the device also reads and writes, so that copies wait for nothing: small
  // blocks of its own, and large ones of `source`, which outlives the result.
  virtual MemorySource& pinned_memory() = 0;
  virtual std::unique_ptr<MemorySource> Pinned(MemorySource& source) = 0;

  // out = (sum along the tree) / divisor. `nodes` are in the order of the levels.
  virtual void Mean(const TreeLevels& levels, std::span<const std::span<const float>> nodes,
                    float divisor, std::span<float> out) = 0;
  // The squares of a whole gradient by lane: see GradientSquare::OfLanes. `lanes` is pinned.
  virtual void Squares(std::span<const float> gradient, std::span<double> lanes) = 0;
  // The checksum of a whole gradient: see ChecksumOf. `sum` is pinned.
  virtual void Checksum(std::span<const float> gradient, std::uint64_t& sum) = 0;

  // Copies; the host's side is pinned, otherwise they are slower. ToHost: `from` must stay
  // unchanged until Then, so that later work need not wait. Report: `from` may be overwritten at
  // once; for small values.
  virtual void ToHost(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  virtual void Report(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  virtual void ToDevice(std::span<const std::byte> from, std::span<std::byte> to) = 0;

  // The exchange with the devices of other ranks; nullptr if there is none.
  virtual GradientRounds* rounds() { return nullptr; }

  // `done` is called once, on another thread, when all that is queued so far is complete, in the
  // order of the calls.
  virtual void Then(std::function<void(Status)> done) = 0;
  // Aborts the rounds, and waits until all that is queued is complete. From then on no `done` of
  // earlier calls is called. False: it was not complete within some seconds.
  virtual bool Drain() = 0;
};

}  // namespace pliant
