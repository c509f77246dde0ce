#include "trainer/protocol/state_check.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(DifferingRanks, AreThoseThatMostDoNotAgreeWith) {
  const auto none = std::nullopt;
  const struct {
    std::vector<std::optional<std::uint64_t>> checksums;
    std::vector<int> want;
  } kCases[] = {
      {.checksums = {}, .want = {}},
      {.checksums = {7}, .want = {}},
      {.checksums = {7, 7, 7}, .want = {}},
      {.checksums = {none, none}, .want = {}},
      {.checksums = {7, none, 7}, .want = {}},
      {.checksums = {7, 8}, .want = {1}},
      {.checksums = {7, 8, 8}, .want = {0}},
      {.checksums = {7, 7, 8}, .want = {2}},
      {.checksums = {7, 8, 7, 8}, .want = {1, 3}},
      {.checksums = {9, 8, 7, 8}, .want = {0, 2}},
      {.checksums = {none, 0, 8, 8}, .want = {1}},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(DifferingRanks(c.checksums), c.want) << testing::PrintToString(c.checksums);
  }
}

TEST(StateChecksum, ContainsWhatTheRuntimeKeeps) {
  const NoiseWindow noise{.trace = 1, .square = 2, .steps = 3};
  const std::uint64_t checksum = ChecksumWith(7, noise, {});
  EXPECT_EQ(ChecksumWith(7, noise, {}), checksum);
  EXPECT_NE(ChecksumWith(7, noise, {{.epoch = 1, .doublings = 1}}), checksum);
  EXPECT_NE(ChecksumWith(8, noise, {}), checksum);
  EXPECT_NE(ChecksumWith(7, {.trace = 1.5, .square = 2, .steps = 3}, {}), checksum);
  EXPECT_NE(ChecksumWith(7, {.trace = 1, .square = -2, .steps = 3}, {}), checksum);
  EXPECT_NE(ChecksumWith(7, {.trace = 1, .square = 2, .steps = 4}, {}), checksum);
}

TEST(StateChecksum, ChangesWithAnyBitThatLearnersShare) {
  std::vector<std::byte> model(13);
  std::vector<std::byte> optimizer(8);
  std::vector<std::byte> own(5);
  const StateDict state = {
      {.name = "model.w", .dtype = DType::kUInt8, .shape = {13}, .bytes = model},
      {.name = "optimizer.w", .dtype = DType::kUInt8, .shape = {8}, .bytes = optimizer},
      {.name = "user.log", .dtype = DType::kUInt8, .shape = {5}, .bytes = own}};
  const std::uint64_t before = *StateChecksum(state);
  for (auto* bytes : {&model, &optimizer}) {
    for (std::byte& byte : *bytes) {
      byte ^= std::byte{4};
      EXPECT_NE(*StateChecksum(state), before);
      byte ^= std::byte{4};
    }
  }
  own[0] = std::byte{1};
  EXPECT_EQ(*StateChecksum(state), before) << "the program's private tensors may differ";
}

}  // namespace
}  // namespace pliant
