#pragma once

#include <climits>
#include <cstddef>

#include "base/result.h"
#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/nccl_loader.h"

namespace pliant {

// Types of NCCL's interface, as in nccl.h. The interface is stable, so the build does not need that
// file.
using NcclComm = void*;
struct NcclUniqueId {
  char internal[128];
};

enum NcclResult : int {
  kNcclSuccess = 0,
  kNcclInProgress = 7,
};
enum NcclType : int {
  kNcclInt8 = 0,
  kNcclFloat32 = 7,
};
enum NcclOperation : int { kNcclSum = 0 };

// ncclConfig_t of version 2.17: newer versions have more fields behind these, and take a shorter
// struct by its size and version.
struct NcclConfig {
  static constexpr int kUndefined = INT_MIN;

  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21700;
  int blocking = kUndefined;
  int cluster_size = kUndefined;
  int min_blocks = kUndefined;
  int max_blocks = kUndefined;
  const char* network = nullptr;
};

// The functions of NCCL that the library uses.
struct NcclFunctions {
  const char* (*get_error_string)(int) = nullptr;
  int (*get_unique_id)(NcclUniqueId*) = nullptr;
  int (*comm_init_rank_config)(NcclComm*, int, NcclUniqueId, int, NcclConfig*) = nullptr;
  int (*comm_get_async_error)(NcclComm, int*) = nullptr;
  int (*comm_abort)(NcclComm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t, int, int, NcclComm, CudaStream) = nullptr;
  int (*recv)(void*, std::size_t, int, int, NcclComm, CudaStream) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm, CudaStream) = nullptr;
};

Result<NcclFunctions> FindNcclFunctions(const NcclLibrary& library);

}  // namespace pliant
