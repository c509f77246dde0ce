#include "trainer/runtime/final_model.h"

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_checkpointer.h"
#include "tests/unit/runtime/fake_compute.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Events = std::vector<std::string>;

const CheckpointLabel kAtTheEnd{.position = {.step = 40, .tick = 44}, .job = {}, .framework = "f"};

struct Publishing {
  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  FakeCompute compute{loop};
  FakeCheckpointer checkpointer{loop};
  Events told;
  bool wanted = true;
  std::vector<TimePoint> tries;
  FinalModel model{{.tasks = tasks, .compute = compute, .checkpointer = checkpointer},
                   {.found =
                        [this](const Manifest& manifest) {
                          told.push_back("found step " + std::to_string(manifest.position.step));
                        },
                    .wanted = [this] { return wanted; },
                    .not_published = [this](const Error& why) { told.push_back(why.message); },
                    .try_again =
                        [this] {
                          tries.push_back(loop.Now());
                          model.Publish(kAtTheEnd);
                        }}};
};

TEST(FinalModel, IsPublishedFromTheStateThatTheProgramHolds) {
  Publishing it;
  it.model.Publish(kAtTheEnd);
  it.model.Publish(kAtTheEnd);
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.told, Events{"found step 40"});
  EXPECT_EQ(it.checkpointer.asked, (Events{"find final", "export"})) << "once";
  EXPECT_EQ(it.compute.asked, Events{"copy 0/1"});
  EXPECT_EQ(it.loop.pending(), 0U);
}

TEST(FinalModel, OneThatIsThereIsNotWrittenAgain) {
  Publishing it;
  it.checkpointer.final_model = Manifest{.position = {.step = 41}};
  it.model.Publish(kAtTheEnd);
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.told, Events{"found step 41"});
  EXPECT_EQ(it.checkpointer.asked, Events{"find final"});
  EXPECT_TRUE(it.compute.asked.empty());
}

TEST(FinalModel, IsTriedAgainAfterAGrowingPause) {
  for (const bool copy_fails : {true, false}) {
    SCOPED_TRACE(copy_fails ? "copy" : "export");
    Publishing it;
    const Error error{ErrorCode::kUnavailable, "no space"};
    if (copy_fails) it.compute.fault = error;
    if (!copy_fails) it.checkpointer.write_error = error;
    it.model.Publish(kAtTheEnd);
    it.loop.RunFor(seconds(30));
    ASSERT_GE(it.tries.size(), 3U);

    EXPECT_EQ(it.told.front(), "no space") << "each failure is reported";
    Duration before = it.tries[0] - TimePoint();
    EXPECT_GE(before, milliseconds(800)) << "not at once";
    for (std::size_t i = 1; i < it.tries.size(); ++i) {
      const Duration pause = it.tries[i] - it.tries[i - 1];
      EXPECT_GT(pause, before);
      before = pause;
    }
    it.compute.fault.reset();
    it.checkpointer.write_error.reset();
    it.loop.RunFor(seconds(120));
    EXPECT_EQ(it.told.back(), "found step 40");
    EXPECT_EQ(it.loop.pending(), 0U);
  }
}

TEST(FinalModel, OthersLookForItUntilItIsThere) {
  Publishing it;
  it.model.Poll();
  it.model.Poll();
  it.loop.RunFor(milliseconds(1900));
  EXPECT_TRUE(it.checkpointer.asked.empty()) << "rank 0 reports it when it exists";
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.checkpointer.asked.size(), 5U) << "one look every two seconds";
  EXPECT_EQ(it.told, Events{});
  it.checkpointer.final_model = Manifest{.position = {.step = 41}};
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.told, Events{"found step 41"});
  EXPECT_EQ(it.loop.pending(), 0U);
}

TEST(FinalModel, LooksAsLongAsItIsWantedAndAgainWhenItIs) {
  Publishing it;
  it.model.Poll();
  it.loop.RunFor(seconds(5));
  it.wanted = false;
  it.loop.RunFor(seconds(5));
  const std::size_t looks = it.checkpointer.asked.size();
  EXPECT_EQ(it.loop.pending(), 0U);
  it.loop.RunFor(seconds(5));
  EXPECT_EQ(it.checkpointer.asked.size(), looks);
  it.model.Poll();
  it.loop.RunFor(seconds(5));
  EXPECT_EQ(it.checkpointer.asked.size(), looks + 1);
}

}  // namespace
}  // namespace pliant
