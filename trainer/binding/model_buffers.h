#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/cuda/cuda_gradients.h"

namespace pliant {

// The buffers of a model, which a forward pass changes. They exist twice: the committed ones here,
// and the program's own.
class ModelBuffers {
 public:
  // `live`: the program's. `gradients`: those of a program whose work is queued on a device, where
  // copies are only queued, too; nullptr: copies are made at once.
  ModelBuffers(StateDict live, std::shared_ptr<CudaGradients> gradients);

  // Allocates the committed ones, each where its live one is, with the present values.
  Status Allocate();

  const StateDict& committed() const { return committed_; }
  std::size_t bytes() const;

  // The program's get the committed values.
  Status Restore() { return Copy(committed_, live_); }
  // The program's get the values that a commit will commit if its step is taken.
  Status Show(std::span<const std::byte> values);
  // The program's become the committed ones.
  Status Commit() { return Copy(live_, committed_); }
  // Copies the program's to host memory.
  Status Save(std::span<std::byte> to);

 private:
  Status Copy(const StateDict& from, const StateDict& to);

  const StateDict live_;
  const std::shared_ptr<CudaGradients> device_gradients_;
  StateDict committed_;
  std::vector<std::shared_ptr<std::byte>> memory_;  // of the committed ones
};

}  // namespace pliant
