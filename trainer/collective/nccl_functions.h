#pragma once

#include <nccl.h>

#include "base/result.h"
#include "trainer/collective/nccl_loader.h"

namespace pliant {

// The functions that the NCCL transport calls, with the types of NCCL's own header (builds with
// PLIANT_CUDA only). NCCL only moves bytes; our code computes the sums, because no NCCL reduction
// is independent of the world size.
struct NcclFunctions {
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclCommShrink) comm_shrink = nullptr;  // null before 2.27.3
};

Result<NcclFunctions> FindNcclFunctions(const NcclLibrary& library);

}  // namespace pliant
