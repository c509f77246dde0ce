#include "tests/fakes/nccl/cuda_side.h"

#include <dlfcn.h>

#include "base/check.h"

namespace pliant::fake_nccl {
namespace {

template <typename Function>
Function* Find(const char* name) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  CHECK(driver != nullptr, "NCCL is used after the driver");
  auto* const function = reinterpret_cast<Function*>(::dlsym(driver, name));
  CHECK(function != nullptr, "the driver is the stand-in");
  return function;
}

}  // namespace

bool EnqueueOn(void* stream, const fake_cuda::Exchange& exchange) {
  // Any context will do: the stream says which one it is.
  struct Current {
    Current() {
      void* context = nullptr;
      Find<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
      Find<int(void*)>("cuCtxPushCurrent_v2")(context);
    }
    ~Current() {
      void* context = nullptr;
      Find<int(void**)>("cuCtxPopCurrent_v2")(&context);
    }
  } const current;
  return Find<decltype(FakeCudaEnqueue)>("FakeCudaEnqueue")(stream, &exchange) == 0;
}

std::byte* OnHost(std::uint64_t device, std::size_t bytes) {
  std::byte* const memory = Find<decltype(FakeCudaOnHost)>("FakeCudaOnHost")(device, bytes);
  CHECK(memory != nullptr, "NCCL is given memory of a device");
  return memory;
}

bool Progress() { return Find<decltype(FakeCudaProgress)>("FakeCudaProgress")() == 0; }

void Report(const std::string& violation) {
  Find<decltype(FakeCudaReport)>("FakeCudaReport")(("NCCL: " + violation).c_str());
}

}  // namespace pliant::fake_nccl
