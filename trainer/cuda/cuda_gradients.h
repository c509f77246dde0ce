#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/cuda/cuda_kernels.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/cuda/event_watch.h"

namespace pliant {

// The gradients of a program whose parameters are on a GPU, and which has named its stream. Sums
// are made on that stream, copies to the host on another one: the next kernels of the program do
// not wait for them.
class CudaGradients final : public GradientDevice {
 public:
  // `sizes`: the number of elements of each parameter's gradient. kUnavailable: no kernels for this
  // GPU; the message is for people.
  static Result<std::shared_ptr<CudaGradients>> Make(std::shared_ptr<CudaMemory> memory,
                                                     std::vector<std::size_t> sizes);
  ~CudaGradients() override;
  CudaGradients(const CudaGradients&) = delete;
  CudaGradients& operator=(const CudaGradients&) = delete;

  // ---- GradientArithmetic ----
  void Zero(std::span<float> out) override;
  void AddUp(std::span<const std::span<const float>> addends, std::span<float> out) override;

  // ---- GradientDevice ----
  MemorySource& memory() override;
  MemorySource& pinned_memory() override;
  std::unique_ptr<MemorySource> Pinned(MemorySource& source) override;
  void Mean(const TreeLevels& levels, std::span<const std::span<const float>> nodes, float divisor,
            std::span<float> out) override;
  void Squares(std::span<const float> gradient, std::span<double> lanes) override;
  void Checksum(std::span<const float> gradient, std::uint64_t& sum) override;
  void ToHost(std::span<const std::byte> from, std::span<std::byte> to) override;
  void Report(std::span<const std::byte> from, std::span<std::byte> to) override;
  void ToDevice(std::span<const std::byte> from, std::span<std::byte> to) override;
  GradientRounds* rounds() override { return rounds_.get(); }
  void Then(std::function<void(Status)> done) override;
  bool Drain() override;

  // Enables the exchange with other ranks' devices.
  void UseRounds(std::unique_ptr<GradientRounds> rounds) { rounds_ = std::move(rounds); }

  // ---- For the program's binding ----

  // The gradient of a parameter, where the program has it. nullptr: zero.
  struct Given {
    std::size_t parameter = 0;
    const void* data = nullptr;
  };
  // Writes gradients, multiplied, to their places in `out`, or left + them. `left`: another whole
  // gradient; empty: none. The program may change them afterwards. kInvalid: one is no memory of
  // this GPU; nothing was queued.
  Status Gather(CudaKernels::Type type, std::span<const Given> given, float scale,
                std::span<const float> left, std::span<float> out);
  // Copies within the GPU, of memory that does not overlap: one kernel for many.
  Status Copy(std::span<const DeviceMemory::Within> copies);
  // The Euclidean norm of float32 tensors of the parameters' sizes. nullptr: zero. Waits for it.
  // kInvalid: likewise.
  Result<double> Norm(std::span<const float* const> tensors);

 private:
  class DeviceSource;
  class PinnedSource;

  CudaGradients(std::shared_ptr<CudaMemory> memory, std::vector<std::size_t> sizes);
  Status Load();
  // Has `queue` queue work on the program's stream. After an error it does nothing.
  Status Queue(const std::function<Status(CudaStream)>& queue);
  // Work queued on copies_ later begins after all that the program's stream has now.
  Status CopiesAwait(CudaStream stream);
  // The lanes of the tensors' squares, in the device's memory.
  Status QueueSquares(std::span<const float* const> tensors, CudaStream stream);

  const std::shared_ptr<CudaMemory> memory_;
  const std::shared_ptr<const CudaDriver> driver_;
  const CudaContext context_;
  const std::vector<std::size_t> sizes_;
  std::vector<std::size_t> offsets_;  // in the gradient
  std::size_t cells_ = 0;
  std::unique_ptr<DeviceSource> device_source_;
  std::unique_ptr<PinnedSource> pinned_source_;
  std::unique_ptr<CudaKernels> kernels_;
  CudaStream copies_ = nullptr;  // to the host
  CudaEvent queued_ = nullptr;   // on the program's stream
  std::shared_ptr<std::byte> lanes_;
  std::shared_ptr<std::byte> checksum_;
  std::unique_ptr<EventWatch> watch_;
  std::unique_ptr<GradientRounds> rounds_;  // nullptr: none

  std::mutex mutex_;
  // Guarded by mutex_.
  Status failed_;             // the first error
  bool copies_wait_ = false;  // copies_ has work that no Then waits for yet
};

}  // namespace pliant
