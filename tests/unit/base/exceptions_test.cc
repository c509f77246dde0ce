#include "base/exceptions.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(CatchAll, GivesWhatTheBodyGives) {
  EXPECT_EQ(CatchAll([]() -> Result<int> { return 7; }), Result<int>(7));
  EXPECT_EQ(CatchAll([]() -> Result<int> { return Invalid("no"); }), Result<int>(Invalid("no")));
  EXPECT_TRUE(CatchAll([] {}));
}

TEST(CatchAll, TurnsExceptionsIntoErrors) {
  const auto thrown = [](const auto& exception) {
    return CatchAll([&] { throw exception; }).error();
  };
  EXPECT_EQ(thrown(std::bad_alloc()), (Error{ErrorCode::kUnavailable, "out of memory"}));
  EXPECT_EQ(thrown(std::runtime_error("a sentence")), (Error{ErrorCode::kInternal, "a sentence"}));
  EXPECT_EQ(thrown(7), (Error{ErrorCode::kInternal, "unknown error"}));
  const std::filesystem::filesystem_error refused("list",
                                                  std::make_error_code(std::errc::io_error));
  EXPECT_EQ(thrown(refused), (Error{ErrorCode::kUnavailable, refused.what()}));
}

TEST(EndOnExceptionDeathTest, NamesTheThreadThatEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      std::thread([] { EndOnException("checkpoints", [] { throw std::bad_alloc(); }); }).join(),
      testing::ExitedWithCode(1), "the thread of checkpoints ends .*: out of memory");
}

}  // namespace
}  // namespace pliant
