#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "trainer/checkpoint/device_memory.h"
#include "trainer/cuda/cuda_driver.h"

namespace pliant {

// The memory of one NVIDIA GPU in its primary context, which frameworks use. The program may name
// the stream on which it queues its work. Copies are then queued there too, and neither the program
// nor this object waits. Otherwise each call waits for all work of the context.
class CudaMemory final : public DeviceMemory {
 public:
  // The GPU that has the memory at `device`. kInvalid: there is no memory of a GPU.
  static Result<std::shared_ptr<CudaMemory>> Of(std::shared_ptr<const CudaDriver> driver,
                                                const void* device);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // kInvalid: `device` is no memory of this GPU.
  Status CheckOwned(const void* device) const;

  // From now on the program queues its work on this stream, after its work on the earlier one. The
  // program's thread.
  Status UseStream(CudaStream stream);
  // kConflict: the program has not named one.
  Result<CudaStream> program_stream() const;

  // Whether the GPU's hardware has failed. Any thread; does not wait.
  bool broken() const;

  const std::shared_ptr<const CudaDriver>& driver() const { return driver_; }
  CudaContext context() const { return context_; }
  int ordinal() const { return ordinal_; }

  Result<std::shared_ptr<std::byte>> Allocate(std::size_t bytes) override;
  Result<std::shared_ptr<std::byte>> AllocateHost(std::size_t bytes) override;
  Status Mark() override;
  Status Write(std::span<const ToDevice> copies) override;
  Status Copy(std::span<const Within> copies) override;
  Status Read(std::span<const ToHost> copies) override;

 private:
  CudaMemory(std::shared_ptr<const CudaDriver> driver, int ordinal, CudaContext context);
  Status MakeStream();
  // Has `queue` queue copies for the program: on its stream, or on our own without one.
  template <typename Queue>
  Status ForProgram(const Queue& queue);

  const std::shared_ptr<const CudaDriver> driver_;
  const int ordinal_;
  const CudaContext context_;
  CudaStream stream_ = nullptr;  // our own, which waits for no other stream
  CudaEvent marked_ = nullptr;
  CudaEvent moved_ = nullptr;                 // from one of the program's streams to the next
  std::optional<CudaStream> program_stream_;  // none: the program did not name it
};

}  // namespace pliant
