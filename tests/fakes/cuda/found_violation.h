#pragma once

#include <string>

#include <dlfcn.h>

namespace pliant {

// The first mistake that the stand-in for CUDA's driver has found in this process. "": none, or the
// driver is not the stand-in.
inline std::string FoundViolation() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "";
  const auto violation =
      reinterpret_cast<const char* (*)(int)>(::dlsym(driver, "FakeCudaViolation"));
  const char* const found = violation == nullptr ? nullptr : violation(0);
  return found == nullptr ? "" : found;
}

}  // namespace pliant
