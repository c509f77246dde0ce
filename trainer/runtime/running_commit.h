#pragma once

#include <span>

#include "trainer/collective/gradient_cells.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/device_tick.h"

namespace pliant {

// A commit while the program does it. With a device it lives until that has used all of it.
class RunningCommit {
 public:
  explicit RunningCommit(CommitWork work) : work_(std::move(work)) {}

  // The program's thread. `device`: nullptr, if the program has its gradients in host memory.
  CommitTask Begin(const GradientCells& cells, const DeviceTick::Memory* device);

  // With a device: the program's work is queued, behind which others may use the same memory there.
  void Release();
  // Then: whether the device must be done before the output is there.
  bool awaited() const { return work_.measure; }
  void Complete();

  const CommitOutput& output() const { return output_; }

 private:
  std::span<double> lanes() const;

  CommitWork work_;
  FloatBuffer gradient_;  // on the device
  MutableBytes lanes_;    // of its squares
  CommitOutput output_;
};

}  // namespace pliant
