#include "trainer/checkpoint/safetensors.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::safetensors {
namespace {

using ::testing::HasSubstr;

Result<std::uint64_t> LengthOf(std::uint64_t length, std::uint64_t file_bytes) {
  std::array<std::byte, kLengthBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(length >> 8 * i);
  return DecodeHeaderLength(bytes, file_bytes);
}

TEST(Safetensors, HeaderComesBackAsItWasWritten) {
  std::vector<std::byte> bytes(36);
  const StateDict tensors = {
      {.name = "count", .dtype = DType::kInt64, .shape = {}, .bytes = std::span(bytes).first(8)},
      {.name = "fc \"1\".wéight", .shape = {2, 3}, .bytes = std::span(bytes).first(24)},
      {.name = "none", .dtype = DType::kFloat64, .shape = {0, 5}, .bytes = {}},
      {.name = "mask", .dtype = DType::kBool, .shape = {4}, .bytes = std::span(bytes).first(4)},
  };
  const std::string encoded = EncodeHeader(tensors, {{"format", "pt"}});
  EXPECT_EQ(encoded.size() % 8, 0U);
  const auto length = DecodeHeaderLength(std::as_bytes(std::span(encoded)).first<kLengthBytes>(),
                                         encoded.size() + 36);
  ASSERT_TRUE(length) << length.error();
  EXPECT_EQ(*length, encoded.size() - kLengthBytes);
  const auto header = DecodeHeader(std::string_view(encoded).substr(kLengthBytes), 36);
  ASSERT_TRUE(header) << header.error();
  const Header want{.tensors = {{"count", DType::kInt64, {}, 0, 8},
                                {"fc \"1\".wéight", DType::kFloat32, {2, 3}, 8, 32},
                                {"none", DType::kFloat64, {0, 5}, 32, 32},
                                {"mask", DType::kBool, {4}, 32, 36}},
                    .metadata = {{"format", "pt"}}};
  EXPECT_EQ(header->metadata, want.metadata);
  EXPECT_THAT(header->tensors, testing::UnorderedElementsAreArray(want.tensors));
}

TEST(Safetensors, LengthsThatCannotBeAreRefused) {
  EXPECT_TRUE(LengthOf(8, 16));
  EXPECT_FALSE(LengthOf(9, 16));
  EXPECT_FALSE(LengthOf(1, 7));
  EXPECT_FALSE(LengthOf(UINT64_MAX, UINT64_MAX));
  EXPECT_FALSE(LengthOf(kMaxHeaderBytes + 1, UINT64_MAX));
}

TEST(Safetensors, HeadersThatDoNotFitAreRefused) {
  struct Case {
    std::string json;
    std::string named;
  };
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"a": {"dtype": )" + dtype + R"(, "shape": )" + shape + R"(, "data_offsets": )" +
           offsets + "}}";
  };
  const Case cases[] = {
      {"", "JSON"},
      {"[]", "JSON"},
      {"{", "JSON"},
      {std::string(100000, '['), "JSON"},
      {tensor(R"("F32")", std::string(1'000'000, '[') + std::string(1'000'000, ']'), "[0,8]"),
       "nested too deep"},
      {R"({"a": 1})", "tensor a"},
      {R"({"a": {"dtype": "F32"}})", "tensor a"},
      {tensor(R"("F33")", "[2]", "[0,8]"), "dtype"},
      {tensor("7", "[2]", "[0,8]"), "dtype"},
      {tensor(R"("F32")", "2", "[0,8]"), "shape"},
      {tensor(R"("F32")", "[-2]", "[0,8]"), "shape"},
      {tensor(R"("F32")", "[2.0]", "[0,8]"), "shape"},
      {tensor(R"("F32")", "[18446744073709551615]", "[0,8]"), "shape"},
      {tensor(R"("F32")", "[4294967296,4294967296,2]", "[0,8]"), "do not fit"},
      {tensor(R"("F32")", "[2]", "[0]"), "data_offsets"},
      {tensor(R"("F32")", "[2]", "[0,8,8]"), "data_offsets"},
      {tensor(R"("F32")", "[2]", "[8,0]"), "do not fit"},
      {tensor(R"("F32")", "[2]", "[0,7]"), "do not fit"},
      {tensor(R"("F32")", "[2]", "[1,9]"), "begins at"},
      {tensor(R"("F32")", "[1]", "[0,4]"), "the file has 8"},
      {tensor(R"("F32")", "[3]", "[0,12]"), "the file has 8"},
      {R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0,8]},
           "a": {"dtype": "U8", "shape": [8], "data_offsets": [0,8]}})",
       "twice"},
      {R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0,8]},
           "b": {"dtype": "U8", "shape": [8], "data_offsets": [0,8]}})",
       "begins at"},
      {R"({"__metadata__": {"a": 1}})", "__metadata__"},
      {R"({"__metadata__": []})", "__metadata__"},
  };
  for (const Case& c : cases) {
    const auto header = DecodeHeader(c.json, 8);
    ASSERT_FALSE(header) << c.json.substr(0, 200);
    EXPECT_EQ(header.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(header.error().message, HasSubstr(c.named));
  }
  EXPECT_TRUE(DecodeHeader(tensor(R"("F32")", "[2]", "[0,8]") + "     ", 8)) << "padding is fine";
}

}  // namespace
}  // namespace pliant::safetensors
