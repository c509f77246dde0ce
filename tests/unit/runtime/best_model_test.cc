#include "trainer/runtime/best_model.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_checkpointer.h"
#include "tests/unit/runtime/fake_compute.h"

namespace pliant {
namespace {

using std::chrono::seconds;
using Events = std::vector<std::string>;

struct Exporting {
  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  FakeCompute compute{loop};
  FakeCheckpointer checkpointer{loop};
  int ended = 0;
  BestModel best{{.tasks = tasks, .compute = compute, .checkpointer = checkpointer},
                 [this] { ++ended; }};

  void Export(std::uint64_t step, std::string note) {
    best.Export({.position = {.step = step}, .job = {}, .framework = "f"}, std::move(note));
  }
};

TEST(BestModel, IsWrittenFromTheStateThatTheProgramHolds) {
  Exporting it;
  it.Export(40, "a");
  EXPECT_EQ(it.compute.asked, Events{"copy 0/1"}) << "before the next step";
  it.loop.RunFor(seconds(1));
  EXPECT_EQ(it.checkpointer.asked, Events{"best a"});
  EXPECT_EQ(it.ended, 1);
}

TEST(BestModel, IsTriedAgainFromTheSameCopy) {
  Exporting it;
  it.checkpointer.write_error = Error{ErrorCode::kUnavailable, "no space"};
  it.Export(40, "a");
  it.loop.RunFor(seconds(3));
  EXPECT_EQ(it.ended, 0);
  it.checkpointer.write_error.reset();
  it.loop.RunFor(seconds(30));
  EXPECT_EQ(it.ended, 1);
  EXPECT_EQ(it.compute.asked, Events{"copy 0/1"});
  EXPECT_EQ(it.checkpointer.asked.back(), "best a");
  EXPECT_GE(it.checkpointer.asked.size(), 2U);
}

TEST(BestModel, IsNotTriedForeverNorOnceThereIsABetterOne) {
  Exporting it;
  it.checkpointer.write_error = Error{ErrorCode::kUnavailable, "no space"};
  it.Export(40, "a");
  it.loop.RunFor(seconds(1));
  it.Export(50, "b");
  it.loop.RunFor(seconds(120));
  EXPECT_EQ(it.ended, 2);
  EXPECT_EQ(it.checkpointer.asked,
            (Events{"best a", "best b", "best b", "best b", "best b", "best b"}));
  EXPECT_EQ(it.loop.pending(), 0U);
}

TEST(BestModel, AStateThatCannotBeCopiedIsLost) {
  Exporting it;
  it.compute.fault = Error{ErrorCode::kUnavailable, "no memory"};
  it.Export(40, "a");
  it.loop.RunFor(seconds(30));
  EXPECT_EQ(it.ended, 1);
  EXPECT_TRUE(it.checkpointer.asked.empty());
}

}  // namespace
}  // namespace pliant
