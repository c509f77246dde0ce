#include "base/crc32c.h"

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  // Test vectors of RFC 3720 §B.4, and the check value in the catalogue of parametrised CRCs.
  const auto of = [](std::string_view text) { return Crc32c(std::as_bytes(std::span(text))); };
  EXPECT_EQ(of(""), 0U);
  EXPECT_EQ(of("123456789"), 0xe3069283U);
  EXPECT_EQ(of(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(of(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
  std::mt19937 random(1);
  std::vector<std::byte> data(20000);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  for (int i = 0; i < 300; ++i) {
    const std::size_t begin = random() % 64;
    const std::size_t size =
        i < 100 ? static_cast<std::size_t>(i) : random() % (data.size() - begin);
    const auto part = std::span(data).subspan(begin, size);
    const auto before = static_cast<std::uint32_t>(random());
    EXPECT_EQ(Crc32c(part, before), Crc32cPortable(part, before)) << begin << "+" << size;
  }
}

TEST(Crc32c, ContinuesFromAPartialChecksum) {
  std::vector<std::byte> data(9000, std::byte{0x5a});
  const std::uint32_t whole = Crc32c(data);
  for (const std::size_t cut : {0U, 1U, 7U, 3072U, 8999U, 9000U})
    EXPECT_EQ(Crc32c(std::span(data).subspan(cut), Crc32c(std::span(data).first(cut))), whole);
}

}  // namespace
}  // namespace pliant
