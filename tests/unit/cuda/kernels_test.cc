// The kernels give the bits of the CPU's code. With the stand-in for the driver their source runs
// on the CPU; on a machine with a GPU the same test runs the machine code.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/collective/tree.h"
#include "trainer/collective/tree_levels.h"
#include "trainer/collective/tree_sum.h"
#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/cuda_kernels.h"

namespace pliant {
namespace {

// NaN has other bits on a GPU.
bool SameBits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
}

class KernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = CudaDriver::Open();
    if (!driver) GTEST_SKIP() << "no driver: " << driver.error().message;
    driver_ = *driver;
    int device = 0;
    void* context = nullptr;
    if (driver_->device_get(&device, 0) != 0) GTEST_SKIP() << "no GPU";
    Must(driver_->primary_context_retain(&context, device));
    Must(driver_->context_push(context));
    auto kernels = CudaKernels::Load(driver_, device);
    ASSERT_TRUE(kernels) << kernels.error().message;
    kernels_ = *std::move(kernels);
  }
  void TearDown() override {
    if (!kernels_) return;
    kernels_.reset();
    for (const CudaPointer memory : memory_) Must(driver_->free(memory));
    void* context = nullptr;
    driver_->context_pop(&context);
  }

  static void Must(int result) { CHECK(result == 0, std::to_string(result)); }

  // Memory of the device with these values; freed at the end of the test.
  template <typename T>
  T* OnDevice(std::span<const T> values, std::size_t offset = 0) {
    CudaPointer memory = 0;
    Must(driver_->alloc(&memory, (values.size() + offset + 1) * sizeof(T)));
    memory_.push_back(memory);
    T* const at = reinterpret_cast<T*>(memory) + offset;
    Must(driver_->copy_to_device(CudaAddress(at), values.data(), values.size_bytes(), nullptr));
    return at;
  }
  template <typename T>
  std::vector<T> Read(const T* device, std::size_t count) {
    std::vector<T> values(count);
    Must(driver_->copy_to_host(values.data(), CudaAddress(device), count * sizeof(T), nullptr));
    Must(driver_->stream_synchronize(nullptr));
    return values;
  }
  void Free() {
    Must(driver_->stream_synchronize(nullptr));
    for (const CudaPointer memory : memory_) Must(driver_->free(memory));
    memory_.clear();
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

  void ExpectTree(int shards, const ShardMap& map, std::size_t elements, std::size_t offset,
                  float divisor, bool in_place) {
    const std::vector<NodeIndex> nodes = NodesOf(map);
    const TreeLevels levels = LevelsOf(shards, nodes);
    cuda::TreeSumArguments sum{.divisor = divisor, .elements = elements};
    std::vector<std::vector<float>> values;
    std::vector<std::span<const float>> spans;
    std::vector<float*> inputs;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      values.push_back(Draw(elements));
      inputs.push_back(OnDevice(std::span<const float>(values.back()), offset));
      sum.inputs[i] = inputs.back();
    }
    for (const std::vector<float>& each : values) spans.emplace_back(each);
    std::vector<float> expected(elements);
    TreeSum().Sum(levels, spans, divisor, expected);
    sum.out = in_place ? inputs.back() : OnDevice(std::span<const float>(expected), offset);
    if (!in_place) {
      const std::vector<float> nothing(elements);
      Must(driver_->copy_to_device(CudaAddress(sum.out), nothing.data(), elements * sizeof(float),
                                   nullptr));
    }
    ASSERT_TRUE(kernels_->TreeSum(sum, levels, nullptr));
    const std::vector<float> sums = Read(sum.out, elements);
    for (std::size_t i = 0; i < elements; ++i) {
      ASSERT_TRUE(SameBits(sums[i], expected[i]))
          << shards << " shards, " << map.world_size() << " learners, element " << i << " of "
          << elements << ": " << sums[i] << " instead of " << expected[i];
    }
    compared_ += elements;
    Free();
  }

  std::shared_ptr<const CudaDriver> driver_;
  std::unique_ptr<CudaKernels> kernels_;
  std::vector<CudaPointer> memory_;
  std::mt19937 random_{7};
  std::size_t compared_ = 0;
};

TEST_F(KernelsTest, TreeSumGivesTheBitsOfTheCpu) {
  for (const int shards : {1, 2, 8, 32, 128, 4096}) {
    for (int world = 1; world <= std::min(shards, 9); ++world) {
      for (const std::size_t elements : {1UL, 5UL, 1024UL, 4'007UL})
        for (const std::size_t offset : {0UL, 1UL})
          ExpectTree(shards, AssignShards(shards, world), elements, offset, 96, false);
    }
  }
  for (const int world : {2, 4, 8, 16, 32, 64})
    ExpectTree(64, AssignShards(64, world), 20'003, 0, 64, false);
  std::printf("%zu elements have the same bits\n", compared_);
}

TEST_F(KernelsTest, TreeSumMayReplaceAnInputAndNeedNotDivide) {
  for (const int world : {2, 3, 8})
    for (const std::size_t offset : {0UL, 1UL})
      ExpectTree(16, AssignShards(16, world), 5'000, offset, 1, true);
}

TEST_F(KernelsTest, ATreeThatIsTooDeepIsRefused) {
  const TreeLevels levels{.first = {0, 0}, .last = {0, 17}, .count = 18};
  EXPECT_EQ(kernels_->TreeSum({.elements = 1}, levels, nullptr).error().code, ErrorCode::kInvalid);
}

// Tensors of a bucket as they are in a model: of all sizes, some without gradient.
struct Tensors {
  std::vector<std::size_t> sizes;
  const char* what = nullptr;
};

template <typename Bits>
float ValueOf(Bits bits, CudaKernels::Type type) {
  if constexpr (sizeof(Bits) == 4) {
    return std::bit_cast<float>(bits);
  } else {
    return type == CudaKernels::Type::kBFloat16 ? std::bit_cast<float>(std::uint32_t{bits} << 16)
                                                : static_cast<float>(std::bit_cast<_Float16>(bits));
  }
}

class GatherTest : public KernelsTest {
 protected:
  template <typename Bits>
  void ExpectGathered(CudaKernels::Type type, const Tensors& tensors, bool has_left,
                      std::size_t misaligned, float scale) {
    std::size_t total = 0;
    for (const std::size_t size : tensors.sizes) total += size;
    const std::vector<float> left = Draw(total);
    std::vector<float> expected(total);
    cuda::GatherArguments gather{.count = static_cast<int>(tensors.sizes.size()), .scale = scale};
    std::size_t offset = 0;
    for (std::size_t i = 0; i < tensors.sizes.size(); ++i) {
      const std::size_t size = tensors.sizes[i];
      std::vector<Bits> bits(size);
      const std::vector<float> drawn = Draw(size);
      for (std::size_t at = 0; at < size; ++at) {
        bits[at] = sizeof(Bits) == 4 ? static_cast<Bits>(std::bit_cast<std::uint32_t>(drawn[at]))
                                     : static_cast<Bits>(random_());
      }
      const bool without = i % 5 == 3;
      for (std::size_t at = 0; at < size; ++at) {
        float value = 0;
        const float own = ValueOf(bits[at], type);
        if (!without) MultiplyInto(&value, &own, scale, 1);
        if (has_left) AddInto(&value, &left[offset + at], &value, 1);
        expected[offset + at] = value;
      }
      gather.data[i] = without ? nullptr : OnDevice(std::span<const Bits>(bits), misaligned);
      gather.size[i] = static_cast<std::uint32_t>(size);
      gather.offset[i] = static_cast<std::uint32_t>(offset);
      offset += size;
    }
    gather.out = OnDevice(std::span<const float>(left));
    if (has_left)
      gather.left = misaligned == 0 ? gather.out : OnDevice(std::span<const float>(left));
    ASSERT_TRUE(kernels_->Gather(type, gather, nullptr));
    const std::vector<float> found = Read(gather.out, total);
    for (std::size_t i = 0; i < total; ++i) {
      ASSERT_TRUE(SameBits(found[i], expected[i]))
          << tensors.what << ", element " << i << ": " << found[i] << " instead of " << expected[i];
    }
    compared_ += total;
    Free();
  }
};

TEST_F(GatherTest, GivesTheBitsOfTheCpu) {
  std::vector<std::size_t> many;
  for (int i = 0; i < cuda::kMaxGathered; ++i) many.push_back(1 + random_() % 300);
  for (const Tensors& tensors :
       {Tensors{{1}, "one number"}, Tensors{{4096, 64, 4097, 10, 640, 9'000}, "a small network"},
        Tensors{many, "as many tensors as a launch takes"}}) {
    for (const bool has_left : {false, true}) {
      for (const std::size_t misaligned : {0UL, 1UL}) {
        SCOPED_TRACE(testing::Message() << tensors.what << (has_left ? ", added" : "")
                                        << (misaligned ? ", misaligned" : ""));
        ExpectGathered<std::uint32_t>(CudaKernels::Type::kFloat32, tensors, has_left, misaligned,
                                      1.5F);
        ExpectGathered<std::uint16_t>(CudaKernels::Type::kFloat16, tensors, has_left, misaligned,
                                      3.0F);
        ExpectGathered<std::uint16_t>(CudaKernels::Type::kBFloat16, tensors, has_left, misaligned,
                                      0.1F);
      }
    }
  }
  std::printf("%zu elements have the same bits\n", compared_);
}

TEST_F(GatherTest, AllNumbersOf16Bits) {
  for (const auto type : {CudaKernels::Type::kFloat16, CudaKernels::Type::kBFloat16}) {
    std::vector<std::uint16_t> all(1U << 16);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const std::vector<float> nothing(all.size());
    cuda::GatherArguments gather{.size = {1U << 16}, .count = 1};
    gather.data[0] = OnDevice(std::span<const std::uint16_t>(all));
    gather.out = OnDevice(std::span<const float>(nothing));
    ASSERT_TRUE(kernels_->Gather(type, gather, nullptr));
    const std::vector<float> found = Read(gather.out, all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_TRUE(SameBits(found[i], ValueOf(all[i], type))) << i;
  }
}

// A product that is rounded before it is added differs from a fused one here.
TEST_F(GatherTest, RoundsTheProductBeforeItIsAdded) {
  const float value = 1 + std::numeric_limits<float>::epsilon();
  const std::array<float, 1> left = {-value * value};
  const std::array<float, 1> values = {value};
  ASSERT_NE(std::fmaf(value, value, left[0]), 0);
  cuda::GatherArguments gather{.size = {1}, .count = 1, .scale = value};
  gather.data[0] = OnDevice(std::span<const float>(values));
  gather.out = OnDevice(std::span<const float>(left));
  gather.left = gather.out;
  ASSERT_TRUE(kernels_->Gather(CudaKernels::Type::kFloat32, gather, nullptr));
  EXPECT_EQ(Read(gather.out, 1).front(), 0);
}

TEST_F(KernelsTest, CopiesEveryByteAndNoOther) {
  const std::vector<std::size_t> sizes = {1, 16, 40'000, 16'384, 7, 4'099, 16'385};
  cuda::CopyArguments copy{.count = static_cast<int>(sizes.size())};
  std::vector<std::vector<std::byte>> contents;
  const std::byte untouched{0xee};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    contents.emplace_back(sizes[i]);
    for (std::byte& each : contents.back()) each = static_cast<std::byte>(random_());
    const std::vector<std::byte> room(sizes[i] + 1, untouched);
    copy.from[i] = OnDevice(std::span<const std::byte>(contents.back()), i % 3 == 1 ? 1 : 0);
    copy.to[i] = OnDevice(std::span<const std::byte>(room), i % 3 == 2 ? 1 : 0);
    copy.size[i] = static_cast<std::uint32_t>(sizes[i]);
  }
  ASSERT_TRUE(kernels_->Copy(copy, nullptr));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::byte> copied = Read(copy.to[i], sizes[i] + 1);
    EXPECT_EQ(copied.back(), untouched);
    copied.pop_back();
    EXPECT_EQ(copied, contents[i]);
  }
}

TEST_F(KernelsTest, SquaresGiveTheBitsOfTheCpu) {
  const std::vector<std::size_t> sizes = {1, 2048, 2049, 7, 10'000, 4096, 4095};
  const GradientCells cells(sizes);
  cuda::SquaresArguments squares{.count = static_cast<int>(sizes.size())};
  std::vector<std::vector<float>> values;
  std::vector<const float*> tensors;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    values.push_back(Draw(sizes[i]));
    for (float& value : values.back()) value = std::isinf(value) ? 1 : value;
    const bool without = i == 3;
    tensors.push_back(without ? nullptr : values.back().data());
    squares.data[i] = without ? nullptr : OnDevice(std::span<const float>(values.back()), i % 2);
    squares.size[i] = static_cast<std::uint32_t>(sizes[i]);
  }
  const std::vector<double> nothing(cells.count() * kSquareLanes, -1);
  squares.lanes = OnDevice(std::span<const double>(nothing));
  ASSERT_TRUE(kernels_->Squares(squares, nullptr));
  const double expected = GradientSquare::Of(cells, sizes, tensors);
  EXPECT_GT(expected, 0);
  EXPECT_EQ(GradientSquare::OfLanes(Read(squares.lanes, nothing.size())), expected);
}

TEST_F(KernelsTest, ChecksumGivesTheBitsOfTheCpu) {
  for (const std::size_t size : {0UL, 1UL, 7UL, 8UL, 4'097UL, 1'000'003UL}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
    const auto* const memory = OnDevice(std::span<const std::byte>(bytes));
    const std::array<unsigned long long, 1> zero = {0};
    auto* const sum = OnDevice(std::span<const unsigned long long>(zero));
    ASSERT_TRUE(kernels_->Checksum(
        {.words = reinterpret_cast<const std::uint64_t*>(memory), .size = size, .sum = sum},
        nullptr));
    EXPECT_EQ(Read(sum, 1).front(), ChecksumOf(bytes)) << size << " bytes";
    Free();
  }
}

}  // namespace
}  // namespace pliant
