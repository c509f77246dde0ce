#include "trainer/process/signals.h"

#include <chrono>
#include <csignal>
#include <vector>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;

TEST(StopSignals, OnesThatCameBeforeAreNotLost) {
  HoldStopSignals();
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);  // without the handler this would end the test
  RealEventLoop loop;
  std::vector<int> seen;
  const StopSignals signals(loop, [&](int signal) {
    seen.push_back(signal);
    if (seen.size() == 1) ::kill(::getpid(), SIGINT);
    if (seen.size() == 2) loop.Stop();
  });
  loop.PostAfter(10s, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(seen, (std::vector{SIGTERM, SIGINT}));
}

}  // namespace
}  // namespace pliant
