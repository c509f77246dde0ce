// A learner with SmallProgram: on a GPU, or on the host with DEVICE=host. DEVICE_ERROR makes its
// data wrong. With the stand-in for the driver it ends with exit code 9 if that has found a race.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/device/small_program.h"
#include "tests/fakes/cuda/found_violation.h"

int main() {
  using namespace pliant;
  const char* const epochs = std::getenv("TOY_EPOCHS");
  const char* const error = std::getenv("DEVICE_ERROR");
  const SmallProgram::Options options = {
      .epochs = epochs == nullptr ? 7 : std::strtoull(epochs, nullptr, 10),
      .train_samples = 250,
      .error = error == nullptr ? 0 : std::strtof(error, nullptr)};
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
  if (const std::string found = FoundViolation(); !found.empty()) {
    std::fprintf(stderr, "%s\n", found.c_str());
    return 9;
  }
  return exit_code;
}
