#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/planner/builders.h"

// GPUs that jobs leave free for pods of other workloads, over time.
namespace pliant::planner {
namespace {

constexpr Seconds kMinute{60};
constexpr Seconds kDayLong{24 * 3600};

PendingPod PodOf(const std::string& name_space, const std::string& name, WallTime since) {
  return {.name_space = name_space, .name = name, .gpus = 6, .since = since};
}

class YieldTest : public testing::Test {
 protected:
  YieldTest() : world_(Nodes(1, 8)) {
    world_.snapshot.pools = {{.yields = true}};
    world_.Submit(JobOf("training", 1, 8));
    world_.Settle();
  }

  bool Yields() const { return world_.MakePlan().pools.at(0).yielded > 0; }

  // The part of a day in which GPUs are kept free. `appear` adds pods, each minute.
  template <typename Appear>
  double IdleOfADay(const Appear& appear) {
    int idle = 0;
    const WallTime begin = world_.snapshot.now;
    for (; world_.snapshot.now < begin + kDayLong; world_.Wait(kMinute)) {
      appear(world_.snapshot.now - begin);
      if (Yields()) ++idle;
    }
    return idle / (kDayLong / kMinute * 1.0);
  }

  World world_;
};

TEST_F(YieldTest, APodHasTenMinutesAtFirst) {
  world_.snapshot.pending = {PodOf("lab", "notebook", world_.snapshot.now)};
  EXPECT_TRUE(Yields());
  world_.Wait(9 * kMinute);
  EXPECT_TRUE(Yields());
  world_.Wait(kMinute);
  EXPECT_FALSE(Yields());
  EXPECT_EQ(world_.MakePlan().again_at, world_.snapshot.now + 10 * kMinute);
}

TEST_F(YieldTest, APodThatIsNeverBoundIdlesLittle) {
  world_.snapshot.pending = {PodOf("lab", "notebook", world_.snapshot.now)};
  EXPECT_LE(IdleOfADay([](auto) {}), 0.1);
}

TEST_F(YieldTest, ManyPodsOfOneKindIdleNoMoreThanOne) {
  const WallTime begin = world_.snapshot.now;
  const double idle = IdleOfADay([&](auto passed) {
    if (passed % (10 * kMinute) != Seconds{0} || passed > 200 * kMinute) return;
    const std::string name = Format("notebook-{}", passed / kMinute);
    world_.snapshot.pending.push_back(PodOf("lab", name, begin + passed));
  });
  EXPECT_LE(idle, 0.1);
}

TEST_F(YieldTest, APodOfAnotherNamespaceHasATurnOfItsOwn) {
  const WallTime begin = world_.snapshot.now;
  world_.snapshot.pending = {PodOf("lab", "notebook", begin),
                             PodOf("team", "job", begin + 15 * kMinute)};
  world_.Wait(15 * kMinute);
  EXPECT_TRUE(Yields());
}

}  // namespace
}  // namespace pliant::planner
