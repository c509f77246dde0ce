#include "operator/kube/token_source.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

const TokenSource::Clock::time_point kTokenStart{1000s};

TEST(TokenSource, ReadsAFileAgainAfterAMinute) {
  TempFolder folder;
  const std::string file = folder.Write("token", "one\n");
  TokenSource tokens("", file);
  EXPECT_EQ(tokens.Get(kTokenStart), "one");
  folder.Write("token", "two");
  EXPECT_EQ(tokens.Get(kTokenStart + 59s), "one");
  EXPECT_EQ(tokens.Get(kTokenStart + 60s), "two");
}

TEST(TokenSource, ARefusedTokenIsWorthASecondTryOnlyIfTheFileHoldsAnother) {
  TempFolder folder;
  const std::string file = folder.Write("token", "one");
  TokenSource tokens("", file);
  EXPECT_EQ(tokens.Get(kTokenStart), "one");
  EXPECT_FALSE(tokens.RenewAfterRefusal("one", kTokenStart));
  folder.Write("token", "two");
  EXPECT_TRUE(tokens.RenewAfterRefusal("one", kTokenStart));
  EXPECT_EQ(tokens.Get(kTokenStart), "two");
}

TEST(TokenSource, AFileThatVanishesLeavesTheLastTokenInUse) {
  TempFolder folder;
  const std::string file = folder.Write("token", "one");
  TokenSource tokens("", file);
  EXPECT_EQ(tokens.Get(kTokenStart), "one");
  std::filesystem::remove(file);
  EXPECT_EQ(tokens.Get(kTokenStart + 1h), "one");
  EXPECT_FALSE(tokens.RenewAfterRefusal("one", kTokenStart + 1h));
}

TEST(TokenSource, NoTokenAtAll) {
  EXPECT_EQ(TokenSource("", "").Get(kTokenStart), "");
  EXPECT_EQ(TokenSource("fixed", "").Get(kTokenStart), "fixed");
  EXPECT_FALSE(TokenSource("fixed", "").RenewAfterRefusal("fixed", kTokenStart));
  EXPECT_EQ(TokenSource("", "/no/such/file").Get(kTokenStart).error().code, ErrorCode::kUnavailable)
      << "the token was not found, not the requested object";
}

TEST(TokenSource, AFileThatIsNoTokenIsRefused) {
  TempFolder folder;
  for (const char* text : {"", "\n", "one\r\nX-Header: two"}) {
    TokenSource tokens("", folder.Write("token", text));
    const auto got = tokens.Get(kTokenStart);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, ErrorCode::kUnavailable) << "it is not a refusal by the server";
  }
}

}  // namespace
}  // namespace pliant::kube
