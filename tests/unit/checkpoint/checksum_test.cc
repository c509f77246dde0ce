#include "trainer/checkpoint/checksum.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Checksum, ChangesWithEveryBitAndPlace) {
  std::vector<std::byte> bytes(37);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 11);
  std::set<std::uint64_t> seen = {ChecksumOf(bytes)};
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_TRUE(seen.insert(ChecksumOf(bytes)).second) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  for (std::size_t i = 0; i < 8; ++i) std::swap(bytes[i], bytes[i + 8]);
  EXPECT_TRUE(seen.insert(ChecksumOf(bytes)).second) << "two words were swapped";
}

// Learners of different builds compare these values; they were computed by the formula, in Python.
TEST(Checksum, IsTheSumOfItsWords) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 21; ++i) bytes.push_back(static_cast<std::byte>(i + 1));
  EXPECT_EQ(ChecksumOf(bytes), 0x8fd805d9d5c51bd3ULL);
}

TEST(Checksum, ZerosOfDifferentLengthsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 20; ++size)
    seen.insert(ChecksumOf(std::vector<std::byte>(size)));
  EXPECT_EQ(seen.size(), 20U);
}

}  // namespace
}  // namespace pliant
