#include "trainer/process/termination_message.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace pliant {
namespace {

TEST(TerminationMessage, IsTheJsonOfTheContract) {
  EXPECT_EQ(Encode({.reason = LeftReason::kDrained, .step = 12}),
            R"({"reason":"Drained","step":12,"message":""})");
  EXPECT_EQ(
      Encode({.reason = LeftReason::kCompleted,
              .step = 1200,
              .message = "say \"done\"",
              .parameters_sha256 = "ab12"}),
      R"({"reason":"Completed","step":1200,"message":"say \"done\"","parametersSha256":"ab12"})");
}

TEST(TerminationMessage, ABrokenGpuHasAReasonOfItsOwn) {
  EXPECT_EQ(Encode({.broken = true, .step = 3, .message = "ECC"}),
            R"({"reason":"GpuFault","step":3,"message":"ECC"})");
}

TEST(TerminationMessage, ALongMessageIsCutAtACharacter) {
  const std::string kPieces[] = {"x", "ü", "€", "𝄞", "\n", "\"", "\xff"};
  for (const std::string& piece : kPieces) {
    for (const int shift : {0, 1, 2, 3}) {
      std::string message(static_cast<std::size_t>(shift), '.');
      while (message.size() < 3 * kMaxTerminationBytes) message += piece;
      const std::string encoded = Encode({.message = message, .parameters_sha256 = "ab12"});
      SCOPED_TRACE(encoded.substr(0, 60));
      EXPECT_LE(encoded.size(), kMaxTerminationBytes);
      EXPECT_GT(encoded.size(), kMaxTerminationBytes - 20) << "as much as fits";
      const auto json = nlohmann::json::parse(encoded, nullptr, false);
      ASSERT_FALSE(json.is_discarded());
      EXPECT_EQ(json["parametersSha256"], "ab12");
      const std::string text = json["message"];
      EXPECT_TRUE(text.ends_with("…"));
      if (piece != "\xff") {
        EXPECT_TRUE(message.starts_with(text.substr(0, text.size() - std::string("…").size())));
      }
    }
  }
}

TEST(TerminationMessage, IsWrittenInPlace) {
  const std::filesystem::path path =
      testing::TempDir() + "pliant-termination-test-" + std::to_string(::getpid());
  ASSERT_TRUE(WriteFileAtomically(path, std::string(5000, 'x')));
  struct stat before{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  const TerminationMessage message{.reason = LeftReason::kFailed, .step = 3, .message = "no data"};
  ASSERT_TRUE(WriteTerminationMessage(path, message));
  EXPECT_EQ(ReadFile(path), Encode(message));
  struct stat after{};
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino) << "Kubernetes mounts this very file";
  std::filesystem::remove(path);
  EXPECT_FALSE(WriteTerminationMessage("/nowhere/log", message));
}

}  // namespace
}  // namespace pliant
