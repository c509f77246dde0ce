#include "trainer/binding/gradient_intake.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A program of three parameters, with 2, 0 and 1 elements, that has to compute one training shard.
class AskedForAShard final : public Operation {
 public:
  // `left`: the sum to which the shard's gradient is added; empty: none.
  explicit AskedForAShard(std::vector<float> left = {}) : left_(std::move(left)) {
    program_->thread().Run(*this, [](Status) {});
    EXPECT_TRUE(program_->Next(std::nullopt).value_or(false));
  }

  BoundProgram& program() { return *program_; }
  const std::array<float, 3>& gradient() const { return gradient_; }
  const std::vector<std::pair<std::size_t, std::size_t>>& ready() const { return ready_.ranges; }
  void LackMemory() { ready_.lacks_memory = true; }
  bool added() const { return added_; }

 private:
  std::optional<Work> Next() override {
    return ShardWork{.task = &task_,
                     .gradient = gradient_,
                     .buffers = {},
                     .sink = left_.empty() ? &ready_ : nullptr,
                     .left = left_,
                     .added = &added_};
  }
  void Done(Result<ShardSums>) override { over_ = true; }
  bool over() const override { return over_; }

  struct Ready final : GradientSink {
    void OnReady(ElementRange range) override {
      if (lacks_memory) throw std::bad_alloc();
      ranges.emplace_back(range.begin, range.size);
    }
    bool lacks_memory = false;
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
  };
  static BoundTensor Parameter(const char* name, std::span<float> values) {
    return {.view = {.name = name,
                     .dtype = DType::kFloat32,
                     .shape = {static_cast<std::int64_t>(values.size())},
                     .bytes = std::as_writable_bytes(values)},
            .role = TensorRole::kParameter};
  }

  const ShardTask task_{.samples = {0}};
  std::array<float, 3> values_{};
  const std::vector<float> left_;
  std::array<float, 3> gradient_{};
  Ready ready_;
  bool added_ = false;
  bool over_ = false;
  const std::unique_ptr<BoundProgram> program_ = *BoundProgram::Make(
      {},
      {Parameter("model.a", std::span(values_).first(2)), Parameter("model.b", {}),
       Parameter("model.c", std::span(values_).last(1))},
      /*device=*/nullptr, /*gradients=*/nullptr);
};

Result<std::vector<const std::byte*>> NoDevice(std::span<const std::span<const std::byte>>) {
  return Fail(ErrorCode::kInternal, "nothing is on a device");
}

TEST(GradientIntake, AGradientIsScaledAndReady) {
  AskedForAShard shard;
  const std::array<double, 2> a = {1.5, -2};
  ASSERT_TRUE(
      PutGradient(shard.program(), 0, a.data(), {.dtype = DType::kFloat64, .scale = 2}, NoDevice));
  EXPECT_THAT(shard.gradient(), ElementsAre(3, -4, 0));
  EXPECT_THAT(shard.ready(), ElementsAre(std::pair(0, 2)));
  EXPECT_THAT(PutGradient(shard.program(), 0, a.data(), {}, NoDevice).error().message,
              HasSubstr("was handed in before"));
  EXPECT_THAT(PutGradient(shard.program(), 2, nullptr, {}, NoDevice).error().message,
              HasSubstr("data is NULL"));
  EXPECT_TRUE(PutGradient(shard.program(), 1, nullptr, {}, NoDevice)) << "it has no elements";
}

TEST(GradientIntake, LackOfMemoryForAGradientEndsTheProgram) {
  AskedForAShard shard;
  const std::array<float, 2> a = {1, 2};
  const float c = 3;
  shard.LackMemory();
  const std::array<const void*, 3> all = {a.data(), nullptr, &c};
  EXPECT_EQ(PutGradients(shard.program(), all, {}, NoDevice).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(shard.program().work(), nullptr);
}

TEST(GradientIntake, NeighboursAreReadyTogether) {
  AskedForAShard shard;
  const std::array<float, 2> a = {1, 2};
  const float c = 3;
  const std::array<const void*, 3> all = {a.data(), &c, &c};
  ASSERT_TRUE(PutGradients(shard.program(), all, {.scale = 0.5}, NoDevice));
  EXPECT_THAT(shard.gradient(), ElementsAre(0.5, 1, 1.5));
  EXPECT_THAT(shard.ready(), ElementsAre(std::pair(0, 3)));
}

TEST(GradientIntake, AParameterWithoutAGradientIsNotReady) {
  AskedForAShard shard;
  const float c = 3;
  ASSERT_TRUE(
      PutGradients(shard.program(), std::array<const void*, 3>{nullptr, &c, &c}, {}, NoDevice));
  EXPECT_THAT(shard.ready(), ElementsAre(std::pair(2, 1)));
  EXPECT_TRUE(shard.program().CheckNotReady(0, 1));
}

TEST(GradientIntake, AGapEndsWhatIsReadyTogether) {
  AskedForAShard shard;
  const std::array<float, 2> a = {1, 2};
  const float c = 3;
  ASSERT_TRUE(PutGradients(shard.program(), std::array<const void*, 3>{a.data(), nullptr, &c}, {},
                           NoDevice));
  EXPECT_THAT(shard.ready(), ElementsAre(std::pair(0, 2), std::pair(2, 1)));
}

TEST(GradientIntake, AllOrNoneAreTaken) {
  AskedForAShard shard;
  const std::array<float, 2> a = {1, 2};
  const float c = 3;
  ASSERT_TRUE(PutGradient(shard.program(), 2, &c, {}, NoDevice));
  const std::array<const void*, 3> all = {a.data(), &c, &c};
  EXPECT_FALSE(PutGradients(shard.program(), all, {}, NoDevice));
  EXPECT_THAT(shard.gradient(), ElementsAre(0, 0, 3));
  EXPECT_TRUE(shard.program().CheckNotReady(0, 2));
}

TEST(GradientIntake, CopiesGradientsFromTheirDevice) {
  const std::array<float, 3> copy = {4, 8, 16};
  const std::array<std::byte, 12> on_device{};  // only their addresses matter
  std::vector<std::pair<const void*, std::size_t>> read;
  const auto device = [&](std::span<const std::span<const std::byte>> from) {
    std::vector<const std::byte*> copies;
    for (const auto& each : from) {
      read.emplace_back(each.data(), each.size());
      copies.push_back(std::as_bytes(std::span(copy)).data() + (each.data() - on_device.data()));
    }
    return Result<std::vector<const std::byte*>>(copies);
  };
  const void* const first = on_device.data();
  const void* const last = &on_device[8];
  {
    AskedForAShard shard;
    ASSERT_TRUE(PutGradient(shard.program(), 0, first, {.on_device = true, .scale = 0.25}, device));
    EXPECT_THAT(read, ElementsAre(std::pair(first, 8)));
    EXPECT_THAT(shard.gradient(), ElementsAre(1, 2, 0));
  }
  read.clear();
  AskedForAShard shard;
  ASSERT_TRUE(PutGradients(shard.program(), std::array<const void*, 3>{first, nullptr, last},
                           {.on_device = true, .scale = 0.25}, device));
  EXPECT_THAT(read, ElementsAre(std::pair(first, 8), std::pair(last, 4))) << "in one call";
  EXPECT_THAT(shard.gradient(), ElementsAre(1, 2, 4));
}

TEST(GradientIntake, TheNormIsThatOfAllTensorsWhereverTheyAre) {
  AskedForAShard shard;
  const std::array<float, 2> a = {3, 4};
  const float c = 12;
  const std::array<const void*, 3> all = {a.data(), nullptr, &c};
  EXPECT_EQ(GradientNorm(shard.program(), all, {}, NoDevice), 13);
  const std::array<const void*, 3> first = {a.data(), nullptr, nullptr};
  EXPECT_EQ(GradientNorm(shard.program(), first, {}, NoDevice), 5);
  const auto device = [&](std::span<const std::span<const std::byte>> from) {
    EXPECT_EQ(from.size(), 2U);
    return Result<std::vector<const std::byte*>>(std::vector{
        reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(&c)});
  };
  EXPECT_EQ(GradientNorm(shard.program(), all, {.on_device = true}, device), 13);
  const float infinite = HUGE_VALF;
  EXPECT_EQ(GradientNorm(shard.program(), std::array<const void*, 3>{a.data(), nullptr, &infinite},
                         {}, NoDevice),
            HUGE_VAL);
}

TEST(GradientIntake, AllAreAddedToTheOtherShardOrNone) {
  const std::array<float, 2> a = {1, 2};
  const float c = 3;
  const std::array<const void*, 3> all = {a.data(), &c, &c};
  const std::array<const void*, 3> not_all = {a.data(), &c, nullptr};
  {
    AskedForAShard shard({10, 20, 30});
    ASSERT_TRUE(PutGradients(shard.program(), all, {.scale = 2}, NoDevice));
    EXPECT_TRUE(shard.added());
    EXPECT_THAT(shard.gradient(), ElementsAre(12, 24, 36));
  }
  AskedForAShard shard({10, 20, 30});
  ASSERT_TRUE(PutGradients(shard.program(), not_all, {.scale = 2}, NoDevice));
  EXPECT_FALSE(shard.added());
  EXPECT_THAT(shard.gradient(), ElementsAre(2, 4, 0));
}

TEST(GradientIntake, AddingInOnePassIsToTheBitOfTwo) {
  constexpr std::size_t kSize = 2048 * 2 + 13;
  std::vector<float> left(kSize);
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    left[i] = static_cast<float>(i) * 0.37F - 500;
    values[i] = 1 / (static_cast<float>(i) + 0.3F);
  }
  std::vector<float> product(kSize);
  PutScaled(values.data(), DType::kFloat32, 1.0 / 3, product);
  std::vector<float> want(kSize);
  std::ranges::transform(left, product, want.begin(), std::plus());
  std::vector<float> sum(kSize);
  AddScaled(left, values.data(), 1.0F / 3, sum);
  EXPECT_EQ(sum, want);
}

}  // namespace
}  // namespace pliant
