#pragma once

#include <cstddef>
#include <cstdint>

// The part of CUDA's driver interface that the stand-in has. Opaque handles are void*.
extern "C" {

using CUdeviceptr = std::uint64_t;

struct CUuuid {
  char bytes[16];
};
struct CUmemLocation {
  int type;  // 1: a device
  int id;
};
struct CUmemAllocationProp {
  int type;                  // 1: pinned
  int requestedHandleTypes;  // 1: a POSIX file descriptor
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;  // 3: read and write
};

int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
int cuGetErrorName(int error, const char** name);
int cuGetErrorString(int error, const char** text);

int cuDeviceGetCount(int* count);
int cuDeviceGet(int* device, int ordinal);
int cuDeviceGetName(char* name, int size, int device);
int cuDeviceGetUuid_v2(CUuuid* uuid, int device);
int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
int cuCtxSetCurrent(void* context);
int cuCtxGetCurrent(void** context);
int cuCtxGetDevice(int* device);
int cuCtxSynchronize();

int cuPointerGetAttribute(void* data, int attribute, CUdeviceptr at);
int cuMemAlloc_v2(CUdeviceptr* at, std::size_t bytes);
int cuMemFree_v2(CUdeviceptr at);
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags);
int cuMemFreeHost(void* memory);
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags);
int cuMemHostUnregister(void* memory);
int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes);
int cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, void* stream);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, void* stream);
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, void* stream);
int cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, void* stream);

int cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* what, int option);
int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const CUmemAllocationProp* what,
                unsigned long long flags);
int cuMemRelease(std::uint64_t handle);
int cuMemAddressReserve(CUdeviceptr* at, std::size_t bytes, std::size_t alignment,
                        CUdeviceptr wanted, unsigned long long flags);
int cuMemAddressFree(CUdeviceptr at, std::size_t bytes);
int cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset, std::uint64_t handle,
             unsigned long long flags);
int cuMemUnmap(CUdeviceptr at, std::size_t bytes);
int cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* who,
                   std::size_t count);
int cuMemExportToShareableHandle(void* descriptor, std::uint64_t handle, int type,
                                 unsigned long long flags);
int cuMemImportFromShareableHandle(std::uint64_t* handle, void* descriptor, int type);

int cuStreamCreate(void** stream, unsigned flags);
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuStreamQuery(void* stream);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuEventCreate(void** event, unsigned flags);
int cuEventDestroy_v2(void* event);
int cuEventRecord(void* event, void* stream);
int cuEventQuery(void* event);
int cuEventSynchronize(void* event);

int cuModuleLoadData(void** module, const void* image);
int cuModuleUnload(void* module);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** parameters, void** extra);

}  // extern "C"
