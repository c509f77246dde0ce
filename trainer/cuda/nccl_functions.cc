#include "trainer/cuda/nccl_functions.h"

#include <type_traits>

namespace pliant {

Result<NcclFunctions> FindNcclFunctions(const NcclLibrary& library) {
  NcclFunctions functions;
  const auto find = [&]<typename Pointer>(Pointer& pointer, const char* name) -> Status {
    ASSIGN_OR_RETURN(pointer, library.Find<std::remove_pointer_t<Pointer>>(name));
    return {};
  };
  RETURN_IF_ERROR(find(functions.get_error_string, "ncclGetErrorString"));
  RETURN_IF_ERROR(find(functions.get_unique_id, "ncclGetUniqueId"));
  RETURN_IF_ERROR(find(functions.comm_init_rank_config, "ncclCommInitRankConfig"));
  RETURN_IF_ERROR(find(functions.comm_get_async_error, "ncclCommGetAsyncError"));
  RETURN_IF_ERROR(find(functions.comm_abort, "ncclCommAbort"));
  RETURN_IF_ERROR(find(functions.group_start, "ncclGroupStart"));
  RETURN_IF_ERROR(find(functions.group_end, "ncclGroupEnd"));
  RETURN_IF_ERROR(find(functions.send, "ncclSend"));
  RETURN_IF_ERROR(find(functions.recv, "ncclRecv"));
  RETURN_IF_ERROR(find(functions.all_reduce, "ncclAllReduce"));
  return functions;
}

}  // namespace pliant
