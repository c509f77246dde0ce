// A learner with SmallProgram: on a GPU, or on the host with DEVICE=host. With the stand-in for the
// driver it ends with exit code 9 if that has found a race.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

#include "base/check.h"
#include "tests/device/small_program.h"

namespace {

// "": nothing was found, or the driver is a real one.
std::string_view Violation() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "";
  const auto violation =
      reinterpret_cast<const char* (*)(int)>(::dlsym(driver, "FakeCudaViolation"));
  const char* const found = violation == nullptr ? nullptr : violation(0);
  return found == nullptr ? "" : found;
}

}  // namespace

int main() {
  using namespace pliant;
  const char* const epochs = std::getenv("TOY_EPOCHS");
  const SmallProgram::Options options = {
      .epochs = epochs == nullptr ? 7 : std::strtoull(epochs, nullptr, 10), .train_samples = 250};
  const char* const device = std::getenv("DEVICE");
  if (device != nullptr && std::string_view(device) == "host") {
    HostMachine host;
    return SmallProgram::Train(host, options).exit_code;
  }
  auto driver = CudaDriver::Open();
  CHECK(driver.has_value(), driver.error().message);
  int exit_code = 0;
  {
    CudaMachine gpu(*driver);
    exit_code = SmallProgram::Train(gpu, options).exit_code;
  }
  if (const std::string_view found = Violation(); !found.empty()) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(found.size()), found.data());
    return 9;
  }
  return exit_code;
}
