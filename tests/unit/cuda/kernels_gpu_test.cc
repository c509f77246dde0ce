// The kernels give the bits of the CPU's code, on a GPU. Printed besides: their rates, next to the
// rate of a copy within the device.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/collective/merge_plan.h"
#include "trainer/collective/tree.h"
#include "trainer/collective/tree_sum.h"
#include "trainer/cuda/kernels.h"

namespace pliant::cuda {
namespace {

void Must(cudaError_t result) { CHECK(result == cudaSuccess, cudaGetErrorString(result)); }

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count) : count_(count) {
    void* memory = nullptr;
    Must(cudaMalloc(&memory, std::max<std::size_t>(count, 1) * sizeof(T)));
    memory_.reset(static_cast<T*>(memory));
    Must(cudaMemset(memory, 0, count * sizeof(T)));
  }
  explicit OnDevice(std::span<const T> values) : OnDevice(values.size()) {
    Must(cudaMemcpy(memory_.get(), values.data(), values.size_bytes(), cudaMemcpyDefault));
  }
  T* data() const { return memory_.get(); }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    Must(cudaMemcpy(values.data(), memory_.get(), count_ * sizeof(T), cudaMemcpyDefault));
    return values;
  }

 private:
  struct Free {
    void operator()(T* memory) const { cudaFree(memory); }
  };
  std::size_t count_;
  std::unique_ptr<T, Free> memory_;
};

// Milliseconds of one call of `work`, on the device: the least of nine.
double MillisecondsOf(const std::function<void()>& work) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  Must(cudaEventCreate(&begin));
  Must(cudaEventCreate(&end));
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 10; ++i) {
    Must(cudaEventRecord(begin, nullptr));
    work();
    Must(cudaEventRecord(end, nullptr));
    Must(cudaEventSynchronize(end));
    float milliseconds = 0;
    Must(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i > 0) least = std::min(least, milliseconds);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return least;
}

struct TreeOnDevice {
  TreeSumShape shape;
  TreeSumInputs inputs;
};

TreeOnDevice Arguments(const MergePlan& plan) {
  TreeOnDevice made;
  made.shape.inputs = static_cast<int>(plan.nodes.size());
  std::ranges::copy(plan.additions, made.shape.additions);
  return made;
}

class KernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }

  // Normal numbers of all sizes, denormals, zeros of both signs, sometimes an infinity.
  std::vector<float> Draw(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) {
      const auto bits = static_cast<std::uint32_t>(random_());
      switch (bits % 16) {
        case 0:
          value = std::bit_cast<float>(static_cast<std::uint32_t>(random_()) & 0x807fffffU);
          break;
        case 1:
          value = bits % 32 == 1 ? 0.0F : -0.0F;
          break;
        default:
          value = std::ldexp(
              static_cast<float>(static_cast<std::int32_t>(static_cast<std::uint32_t>(random_()))),
              static_cast<int>(bits / 16 % 60) - 60);
      }
    }
    if (count > 100) values[random_() % count] = std::numeric_limits<float>::infinity();
    return values;
  }

  std::mt19937 random_{7};
};

// NaN has other bits on a GPU.
bool SameBits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
}

TEST_F(KernelsTest, TreeSumGivesTheBitsOfTheCpu) {
  int compared = 0;
  for (const int shards : {1, 2, 8, 32, 128}) {
    for (int world = 1; world <= std::min(shards, 9); ++world) {
      for (const std::size_t elements : {1UL, 5UL, 1024UL, 40'004UL}) {
        for (const std::size_t offset : {0UL, 1UL}) {
          const ShardMap map = AssignShards(shards, world);
          const MergePlan plan = PlanMerges(map);
          TreeSum host(map);
          ASSERT_EQ(plan.nodes, host.nodes());
          TreeOnDevice device = Arguments(plan);
          std::vector<std::vector<float>> values;
          std::vector<OnDevice<float>> memory;
          std::vector<std::span<const float>> spans;
          for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
            values.push_back(Draw(elements + offset));
            memory.emplace_back(std::span<const float>(values.back()));
            device.inputs.of[i] = memory.back().data() + offset;
          }
          for (const std::vector<float>& each : values)
            spans.push_back(std::span(each).subspan(offset));
          std::vector<float> expected(elements);
          host.Sum(spans, 96, expected);
          const OnDevice<float> out(elements);
          Must(LaunchTreeSum(device.shape, device.inputs, 96, out.data(), elements, nullptr));
          const std::vector<float> sums = out.Read();
          for (std::size_t i = 0; i < elements; ++i) {
            ASSERT_TRUE(SameBits(sums[i], expected[i]))
                << shards << " shards, " << world << " learners, element " << i << ": " << sums[i]
                << " instead of " << expected[i];
            ++compared;
          }
        }
      }
    }
  }
  std::printf("%d elements have the same bits\n", compared);
}

TEST_F(KernelsTest, ChecksumGivesTheBitsOfTheCpu) {
  for (const std::size_t size : {0UL, 1UL, 7UL, 8UL, 4'097UL, 10'000'003UL}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
    const OnDevice<std::byte> memory{std::span<const std::byte>(bytes)};
    const OnDevice<std::uint64_t> sum(1);
    Must(LaunchChecksum(memory.data(), size, sum.data(), nullptr));
    EXPECT_EQ(sum.Read().front(), ChecksumOf(bytes)) << size << " bytes";
  }
}

// The gradients of a model of 124 million parameters.
TEST_F(KernelsTest, Rates) {
  constexpr std::size_t kElements = 124'000'000;
  constexpr double kBytes = kElements * sizeof(float);
  std::size_t free = 0;
  std::size_t total = 0;
  Must(cudaMemGetInfo(&free, &total));
  if (static_cast<double>(free) < 18 * kBytes) GTEST_SKIP() << "too little memory is free";
  const OnDevice<float> out(kElements);
  std::vector<OnDevice<float>> inputs;
  for (int i = 0; i < 16; ++i) inputs.emplace_back(kElements);
  const double copy =
      2 * kBytes / 1e6 / MillisecondsOf([&] {
        Must(cudaMemcpyAsync(out.data(), inputs[0].data(), static_cast<std::size_t>(kBytes),
                             cudaMemcpyDeviceToDevice, nullptr));
      });
  std::printf("%-28s %8.0f GB/s (read and written)\n", "copy within the device", copy);
  const auto print = [&](const std::string& what, double bytes, double milliseconds) {
    const double rate = bytes / 1e6 / milliseconds;
    std::printf("%-28s %8.0f GB/s, %5.1f %% of the copy, %.3f ms\n", what.c_str(), rate,
                100 * rate / copy, milliseconds);
  };
  for (const int count : {2, 4, 8, 16}) {
    TreeOnDevice tree = Arguments(PlanMerges(AssignShards(count, count)));
    for (int i = 0; i < count; ++i) tree.inputs.of[i] = inputs[static_cast<std::size_t>(i)].data();
    print(Format("tree sum of {} inputs", count), (count + 1) * kBytes, MillisecondsOf([&] {
            Must(LaunchTreeSum(tree.shape, tree.inputs, 64, out.data(), kElements, nullptr));
          }));
  }
  const OnDevice<std::uint64_t> sum(1);
  print("checksum", kBytes, MillisecondsOf([&] {
          Must(LaunchChecksum(inputs[0].data(), static_cast<std::size_t>(kBytes), sum.data(),
                              nullptr));
        }));
}

}  // namespace
}  // namespace pliant::cuda
