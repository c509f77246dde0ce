#include "operator/web/loop_pulse.h"

#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"

namespace pliant::web {
namespace {
using namespace std::chrono_literals;

TEST(LoopPulse, TellsWhenTheLoopMovedLastAndHowItIs) {
  SimEventLoop loop;
  loop.RunFor(10s);
  std::string not_ready = "still listing objects";
  std::optional<LoopPulse> pulse(std::in_place, loop, [&] { return not_ready; });
  EXPECT_EQ(pulse->last().at, loop.Now()) << "known before the loop runs";
  EXPECT_EQ(pulse->last().not_ready, "still listing objects");

  not_ready.clear();
  const TimePoint began = loop.Now();
  loop.RunFor(3500ms);
  EXPECT_EQ(pulse->last().at, began + 3s);
  EXPECT_EQ(pulse->last().not_ready, "");

  pulse.reset();
  loop.RunFor(5s);
  EXPECT_EQ(loop.pending(), 0u);
}

}  // namespace
}  // namespace pliant::web
