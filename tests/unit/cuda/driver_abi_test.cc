// The library's own declarations of the driver's interface are those of cuda.h.

#include <cuda.h>
#include <gtest/gtest.h>

#include "tests/unit/cuda/same_functions.h"
#include "trainer/cuda/cuda_driver.h"

namespace pliant {
namespace {

#define EXPECT_ALIKE(member, function) \
  static_assert(Functions<decltype(CudaDriver::member), decltype(&(function))>::kAlike, #function)

EXPECT_ALIKE(init, cuInit);
EXPECT_ALIKE(get_error_name, cuGetErrorName);
EXPECT_ALIKE(device_get, cuDeviceGet);
EXPECT_ALIKE(device_get_attribute, cuDeviceGetAttribute);
EXPECT_ALIKE(device_get_uuid, cuDeviceGetUuid_v2);
EXPECT_ALIKE(primary_context_retain, cuDevicePrimaryCtxRetain);
EXPECT_ALIKE(context_push, cuCtxPushCurrent_v2);
EXPECT_ALIKE(context_pop, cuCtxPopCurrent_v2);
EXPECT_ALIKE(context_synchronize, cuCtxSynchronize);
EXPECT_ALIKE(pointer_get_attribute, cuPointerGetAttribute);
EXPECT_ALIKE(alloc, cuMemAlloc_v2);
EXPECT_ALIKE(free, cuMemFree_v2);
EXPECT_ALIKE(host_alloc, cuMemHostAlloc);
EXPECT_ALIKE(host_free, cuMemFreeHost);
EXPECT_ALIKE(copy_to_host, cuMemcpyDtoHAsync_v2);
EXPECT_ALIKE(copy_to_device, cuMemcpyHtoDAsync_v2);
EXPECT_ALIKE(copy_within, cuMemcpyDtoDAsync_v2);
EXPECT_ALIKE(stream_create, cuStreamCreate);
EXPECT_ALIKE(stream_destroy, cuStreamDestroy_v2);
EXPECT_ALIKE(stream_synchronize, cuStreamSynchronize);
EXPECT_ALIKE(stream_wait_event, cuStreamWaitEvent);
EXPECT_ALIKE(event_create, cuEventCreate);
EXPECT_ALIKE(event_destroy, cuEventDestroy_v2);
EXPECT_ALIKE(event_record, cuEventRecord);
EXPECT_ALIKE(event_query, cuEventQuery);
EXPECT_ALIKE(module_load_data, cuModuleLoadData);
EXPECT_ALIKE(module_unload, cuModuleUnload);
EXPECT_ALIKE(module_get_function, cuModuleGetFunction);
EXPECT_ALIKE(launch_kernel, cuLaunchKernel);

TEST(DriverAbi, ConstantsAreThoseOfCuda) {
  EXPECT_EQ(kCudaSuccess, CUDA_SUCCESS);
  EXPECT_EQ(kCudaInvalidValue, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(kCudaNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU_POINTER_ATTRIBUTE_CONTEXT, 1);
  EXPECT_EQ(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2);
  EXPECT_EQ(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9);
  EXPECT_EQ(CU_MEMORYTYPE_DEVICE, 2);
  EXPECT_EQ(CU_MEMHOSTALLOC_PORTABLE, 1);
  EXPECT_EQ(CU_STREAM_NON_BLOCKING, 1);
  EXPECT_EQ(CU_EVENT_DISABLE_TIMING, 2);
  EXPECT_EQ(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75);
  EXPECT_EQ(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76);
}

}  // namespace
}  // namespace pliant
