#include "operator/kube/work_queue.h"

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

const NamespacedName kA{"ns", "a"};
const NamespacedName kB{"ns", "b"};

class WorkQueueTest : public testing::Test {
 protected:
  SimEventLoop loop_;
  int ready_ = 0;
  WorkQueue queue_{loop_, [this] { ++ready_; }};
};

TEST_F(WorkQueueTest, AKeyStandsInItOnceInOrderOfArrival) {
  queue_.Add(kB);
  queue_.Add(kA);
  queue_.Add(kB);
  EXPECT_EQ(queue_.depth(), 2u);
  EXPECT_EQ(queue_.Take(), kB);
  EXPECT_EQ(queue_.Take(), kA);
  EXPECT_EQ(queue_.Take(), std::nullopt);
}

TEST_F(WorkQueueTest, AKeyBeingWorkedOnComesAgainOnlyAfterDone) {
  queue_.Add(kA);
  EXPECT_EQ(queue_.Take(), kA);
  queue_.Add(kA);
  queue_.Add(kA);
  EXPECT_EQ(queue_.Take(), std::nullopt);
  queue_.Done(kA);
  EXPECT_EQ(queue_.Take(), kA);
  queue_.Done(kA);
  EXPECT_EQ(queue_.Take(), std::nullopt);
  EXPECT_EQ(queue_.working(), 0u);
}

TEST_F(WorkQueueTest, ReportsReadyOnceForManyKeysAndNeverWithinAdd) {
  queue_.Add(kA);
  queue_.Add(kB);
  EXPECT_EQ(ready_, 0);
  loop_.RunFor(0s);
  EXPECT_EQ(ready_, 1);
  queue_.Take();
  queue_.Add(kA);
  loop_.RunFor(1h);
  EXPECT_EQ(ready_, 1) << "the key is being processed";
  queue_.Done(kA);
  loop_.RunFor(0s);
  EXPECT_EQ(ready_, 2);
}

TEST_F(WorkQueueTest, TheShortestOfSeveralDelaysCounts) {
  queue_.AddAfter(kA, 10s);
  queue_.AddAfter(kA, 2s);
  queue_.AddAfter(kA, 5s);
  loop_.RunFor(1999ms);
  EXPECT_EQ(queue_.depth(), 0u);
  loop_.RunFor(1ms);
  EXPECT_EQ(queue_.depth(), 1u);
  queue_.Take();
  queue_.Done(kA);
  loop_.RunFor(1h);
  EXPECT_EQ(queue_.depth(), 0u) << "the longer delays are dropped";
}

TEST_F(WorkQueueTest, ADelayCanBeCancelled) {
  queue_.AddAfter(kA, 2s);
  queue_.AddAfter(kB, 3s);
  queue_.CancelDelay(kA);
  queue_.CancelDelay(kA);
  loop_.RunFor(1h);
  EXPECT_EQ(queue_.Take(), kB);
  EXPECT_EQ(queue_.depth(), 0u);
  queue_.AddAfter(kA, 1s);
  loop_.RunFor(1s);
  EXPECT_EQ(queue_.Take(), kA) << "it may be delayed again";
}

TEST_F(WorkQueueTest, ADestroyedQueueLeavesNoTimers) {
  {
    WorkQueue queue(loop_, [] { FAIL(); });
    queue.Add(kA);
    queue.AddAfter(kB, 1s);
  }
  EXPECT_EQ(loop_.pending(), 0u);
}

TEST(WorkQueueObserver, TellsOfWaitAndWork) {
  SimEventLoop loop;
  Duration waited{};
  Duration worked{};
  int adds = 0;
  WorkQueue queue(loop, [] {},
                  {.on_add = [&] { ++adds; },
                   .on_take = [&](Duration d) { waited = d; },
                   .on_done = [&](Duration d) { worked = d; }});
  queue.Add(kA);
  queue.Add(kA);
  loop.RunFor(3s);
  queue.Take();
  loop.RunFor(2s);
  queue.Done(kA);
  EXPECT_EQ(waited, Duration(3s));
  EXPECT_EQ(worked, Duration(2s));
  EXPECT_EQ(adds, 1);
}

}  // namespace
}  // namespace pliant::kube
