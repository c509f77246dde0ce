#include "trainer/cuda/staged_memory.h"

#include <utility>

namespace pliant {

Result<std::shared_ptr<StagedMemory>> StagedMemory::Make(std::shared_ptr<DeviceMemory> devices,
                                                         void* device, std::size_t bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<std::byte> staging, devices->AllocateStaging(device, bytes));
  return std::shared_ptr<StagedMemory>(
      new StagedMemory(std::move(devices), device, bytes, std::move(staging)));
}

StagedMemory::StagedMemory(std::shared_ptr<DeviceMemory> devices, void* device, std::size_t bytes,
                           std::shared_ptr<std::byte> staging)
    : devices_(std::move(devices)), device_(device), bytes_(bytes), staging_(std::move(staging)) {}

Status StagedMemory::Read() { return devices_->Read(device_, copy()); }

Status StagedMemory::Write() { return devices_->Write(copy(), device_); }

}  // namespace pliant
