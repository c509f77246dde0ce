#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "trainer/cuda/device_memory.h"

namespace pliant {

// A program's memory on a device, and its copy in host memory. The library works with the copy.
class StagedMemory {
 public:
  // kInvalid: there is no device memory at `device`.
  static Result<std::shared_ptr<StagedMemory>> Make(std::shared_ptr<DeviceMemory> devices,
                                                    void* device, std::size_t bytes);

  std::span<std::byte> copy() const { return {staging_.get(), bytes_}; }

  Status Read();   // into the copy
  Status Write();  // from the copy

 private:
  StagedMemory(std::shared_ptr<DeviceMemory> devices, void* device, std::size_t bytes,
               std::shared_ptr<std::byte> staging);

  const std::shared_ptr<DeviceMemory> devices_;
  void* const device_;
  const std::size_t bytes_;
  const std::shared_ptr<std::byte> staging_;
};

}  // namespace pliant
