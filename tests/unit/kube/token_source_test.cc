#include "operator/kube/token_source.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

const TokenSource::Clock::time_point kStart{1000s};

TEST(TokenSource, AFileIsReadAnewAfterAMinute) {
  TempFolder folder;
  const std::string file = folder.Write("token", "one\n");
  TokenSource tokens("", file);
  EXPECT_EQ(tokens.Get(kStart)->token, "one");
  folder.Write("token", "two");
  EXPECT_EQ(tokens.Get(kStart + 59s)->token, "one");
  EXPECT_EQ(tokens.Get(kStart + 60s)->token, "two");
}

TEST(TokenSource, ARefusedTokenIsWorthASecondTryOnlyIfTheFileHoldsAnother) {
  TempFolder folder;
  const std::string file = folder.Write("token", "one");
  TokenSource tokens("", file);
  EXPECT_EQ(tokens.Get(kStart)->token, "one");
  EXPECT_FALSE(tokens.RenewAfterRefusal({.token = "one"}, kStart));
  folder.Write("token", "two");
  EXPECT_TRUE(tokens.RenewAfterRefusal({.token = "one"}, kStart));
  EXPECT_EQ(tokens.Get(kStart)->token, "two");
}

TEST(TokenSource, AFileThatVanishesLeavesTheLastTokenInUse) {
  TempFolder folder;
  const std::string file = folder.Write("token", "one");
  TokenSource tokens("", file);
  EXPECT_EQ(tokens.Get(kStart)->token, "one");
  std::filesystem::remove(file);
  EXPECT_EQ(tokens.Get(kStart + 1h)->token, "one");
  EXPECT_FALSE(tokens.RenewAfterRefusal({.token = "one"}, kStart + 1h));
}

TEST(TokenSource, NoTokenAtAll) {
  EXPECT_EQ(TokenSource("", "").Get(kStart)->token, std::nullopt);
  EXPECT_EQ(TokenSource("fixed", "").Get(kStart)->token, "fixed");
  EXPECT_FALSE(TokenSource("fixed", "").RenewAfterRefusal({.token = "fixed"}, kStart));
  EXPECT_EQ(TokenSource("", "/no/such/file").Get(kStart).error().code, ErrorCode::kUnavailable)
      << "what is not found is the token, not what the request is about";
}

TEST(TokenSource, AFileThatIsNoTokenIsRefused) {
  TempFolder folder;
  for (const char* text : {"", "\n", "one\r\nX-Header: two"}) {
    TokenSource tokens("", folder.Write("token", text));
    const auto got = tokens.Get(kStart);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, ErrorCode::kUnavailable) << "the server has refused nothing";
  }
}

}  // namespace
}  // namespace pliant::kube
