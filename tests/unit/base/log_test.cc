#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::HasSubstr;

TEST(Log, AStatusStaysBelowWhatIsLogged) {
  constexpr const char* kErase = "\r\x1b[K";
  testing::internal::CaptureStderr();
  log::Info("before", {});
  log::ShowStatus("step 1");
  log::Info("between", {});
  log::ShowStatus("step 2");
  log::ShowStatus("");
  log::Info("after", {});
  const std::string written = testing::internal::GetCapturedStderr();
  const std::string erase = kErase;
  EXPECT_EQ(written.find(erase), written.find("step 1") + 6)
      << "nothing before it needs to be erased";
  EXPECT_THAT(written, HasSubstr("step 1" + erase));
  EXPECT_THAT(written, HasSubstr("between\nstep 1" + erase + "step 2" + erase));
  EXPECT_TRUE(written.ends_with("after\n")) << written;
}

}  // namespace
}  // namespace pliant
