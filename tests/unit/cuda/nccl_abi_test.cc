// The library's own declarations of NCCL's interface are those of nccl.h.

#include <cstddef>

#include <gtest/gtest.h>
#include <nccl.h>

#include "tests/unit/cuda/same_functions.h"
#include "trainer/cuda/nccl_functions.h"

namespace pliant {
namespace {

#define EXPECT_ALIKE(member, function)                                                     \
  static_assert(Functions<decltype(NcclFunctions::member), decltype(&(function))>::kAlike, \
                #function)

EXPECT_ALIKE(get_error_string, ncclGetErrorString);
EXPECT_ALIKE(get_unique_id, ncclGetUniqueId);
EXPECT_ALIKE(comm_init_rank_config, ncclCommInitRankConfig);
EXPECT_ALIKE(comm_get_async_error, ncclCommGetAsyncError);
EXPECT_ALIKE(comm_abort, ncclCommAbort);
EXPECT_ALIKE(group_start, ncclGroupStart);
EXPECT_ALIKE(group_end, ncclGroupEnd);
EXPECT_ALIKE(send, ncclSend);
EXPECT_ALIKE(recv, ncclRecv);
EXPECT_ALIKE(all_reduce, ncclAllReduce);

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
// The struct begins as NCCL's does.
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_blocks) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, max_blocks) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, network) == offsetof(ncclConfig_t, netName));
static_assert(sizeof(NcclConfig) == offsetof(ncclConfig_t, splitShare));

TEST(NcclAbi, ConstantsAreThoseOfNccl) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.network, theirs.netName);
  EXPECT_EQ(ours.version, NCCL_VERSION(2, 17, 0));
  EXPECT_EQ(kNcclSuccess, static_cast<int>(ncclSuccess));
  EXPECT_EQ(kNcclInProgress, static_cast<int>(ncclInProgress));
  EXPECT_EQ(kNcclInt8, static_cast<int>(ncclInt8));
  EXPECT_EQ(kNcclFloat32, static_cast<int>(ncclFloat32));
  EXPECT_EQ(kNcclSum, static_cast<int>(ncclSum));
}

}  // namespace
}  // namespace pliant
