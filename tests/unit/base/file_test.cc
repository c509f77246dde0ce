#include "base/file.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/secret.h"

namespace pliant {
namespace {

TEST(File, WritesAndReads) {
  const std::filesystem::path folder =
      testing::TempDir() + "pliant-file-test-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const auto path = folder / "counter";
  const std::string large(100000, 'x');
  for (const std::string& content : {std::string("1\n"), large, std::string()}) {
    ASSERT_TRUE(WriteFileAtomically(path, content));
    EXPECT_EQ(ReadFile(path), content);
  }
  EXPECT_EQ(ReadFile(folder / "missing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(WriteFileAtomically(folder / "missing" / "counter", "1").error().code,
            ErrorCode::kNotFound);
  EXPECT_THAT(ReadFile(folder / "missing").error().message, testing::HasSubstr("missing"));
  std::filesystem::remove_all(folder);
}

TEST(Secret, OnlyTheWholeSecretIsTheSame) {
  EXPECT_TRUE(ConstantTimeEquals("abc", "abc"));
  for (const char* offered : {"", "ab", "abcd", "abd", "ABC"}) {
    EXPECT_FALSE(ConstantTimeEquals(offered, "abc")) << offered;
  }
  EXPECT_FALSE(ConstantTimeEquals("", "")) << "an empty secret never matches";
}

}  // namespace
}  // namespace pliant
