#include "trainer/collective/gradient_arithmetic.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/check.h"
#include "trainer/collective/float_environment.h"
#include "trainer/collective/float_loops.h"

namespace pliant {
namespace {

constexpr std::size_t kChunk = 2048;  // floats: 8 KiB of each operand

class Host final : public GradientArithmetic {
 public:
  void Zero(std::span<float> out) override { std::ranges::fill(out, 0.0F); }

  // In chunks that fit the cache.
  void AddUp(std::span<const std::span<const float>> addends, std::span<float> out) override {
    CHECK(addends.size() >= 2, "there is something to add");
    for (const auto& addend : addends) CHECK(addend.size() == out.size(), "equal sizes");
    const FloatEnvironment environment;  // this may be the program's thread
    std::array<float, kChunk> scratch;
    for (std::size_t begin = 0; begin < out.size(); begin += kChunk) {
      const std::size_t size = std::min(kChunk, out.size() - begin);
      const float* right = addends.back().data() + begin;
      for (std::size_t i = addends.size() - 1; i-- > 0;) {
        float* const sum = i == 0 ? out.data() + begin : scratch.data();
        AddInto(sum, addends[i].data() + begin, right, size);
        right = sum;
      }
    }
  }
};

}  // namespace

GradientArithmetic& HostArithmetic() {
  static Host host;
  return host;
}

}  // namespace pliant
