#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/planner/builders.h"

// Jobs that wait while others arrive for as long as one likes: each comes to the front and starts,
// and it costs the others little. Eight GPUs; what arrives every 150 s runs for 600 s, whatever its
// size. While the large one has all GPUs, the small ones wait, as they would for any that came
// before them.
namespace pliant::planner {
namespace {

constexpr Seconds kTick{10};
constexpr Seconds kEvery{150};
constexpr Seconds kLength{600};

struct Arrivals {
  std::string name;
  LearnerCount large_learners = 8;
  int large_priority = 5000;
  LearnerCount min_small = 1;
  LearnerCount max_small = 4;
  QueueView queue;
  Seconds large_starts_within;
  Seconds mean_wait_of_small;  // at most
};

struct Outcome {
  std::optional<Seconds> large_started;
  Seconds mean_wait_of_small{};
};

Outcome Simulate(const Arrivals& arrivals) {
  World world(Nodes(1, 8));
  world.snapshot.queues = {arrivals.queue};
  const auto at = [&](WallTime time) { return std::chrono::duration_cast<Seconds>(time - kStart); };
  std::map<std::string, Seconds> submitted;
  std::map<std::string, Seconds> started;
  const Seconds end = arrivals.large_starts_within + Seconds{3600};
  for (int small = 0; at(world.snapshot.now) < end; world.Wait(kTick)) {
    const Seconds now = at(world.snapshot.now);
    if (now == kEvery * 8) {
      JobOf large("large", arrivals.large_learners, arrivals.large_learners);
      large.Priority(arrivals.large_priority).Submitted(now);
      world.Submit(large);
      submitted["large"] = now;
    }
    if (now.count() % kEvery.count() == 0) {
      const std::string name = Format("small-{:05}", small++);
      JobOf job(name, arrivals.min_small, arrivals.max_small);
      world.Submit(job.Priority(5000).Submitted(now));
      submitted[name] = now;
    }
    world.Settle();
    for (const auto& [name, learners] : world.Sizes()) started.try_emplace(name, now);
    for (const auto& [name, since] : started) {
      if (now - since == kLength) world.Finish(name);
    }
    if (started.contains("large") && now - started["large"] > kLength) break;
  }
  Outcome outcome;
  if (started.contains("large")) outcome.large_started = started["large"] - submitted["large"];
  Seconds waited{};
  for (const auto& [name, since] : submitted) {
    if (name != "large" && started.contains(name)) waited += started[name] - since;
  }
  outcome.mean_wait_of_small = waited / std::max<int>(1, static_cast<int>(started.size()) - 1);
  return outcome;
}

const Arrivals kArrivals[] = {
    {.name = "equal priority",
     .large_starts_within = Seconds{1000},
     .mean_wait_of_small = Seconds{300}},
    {.name = "half the priority: an hour later",
     .large_priority = 2500,
     .large_starts_within = Seconds{3600} + kLength + kTick,
     .mean_wait_of_small = Seconds{120}},
    {.name = "a tenth of it: nine hours later",
     .large_priority = 500,
     .large_starts_within = Seconds{9 * 3600} + kLength + kTick,
     .mean_wait_of_small = Seconds{30}},
    {.name = "half the priority, among rigid jobs",
     .large_priority = 2500,
     .min_small = 1,
     .max_small = 1,
     .large_starts_within = Seconds{3600} + kLength + kTick,
     .mean_wait_of_small = Seconds{120}},
    {.name = "half the priority, half the GPUs",
     .large_learners = 4,
     .large_priority = 2500,
     .min_small = 2,
     .max_small = 2,
     .large_starts_within = Seconds{3600} + kLength + kTick,
     .mean_wait_of_small = Seconds{200}},
    {.name = "half the priority in a strict queue",
     .large_priority = 2500,
     .queue = {.strict = true},
     .large_starts_within = Seconds{3600} + kLength + kTick,
     .mean_wait_of_small = Seconds{120}},
};

TEST(Arrivals, ALargeJobStartsAndTheSmallOnesHardlyWait) {
  for (const Arrivals& each : kArrivals) {
    SCOPED_TRACE(each.name);
    const Outcome outcome = Simulate(each);
    EXPECT_TRUE(outcome.large_started) << "it starves";
    EXPECT_LE(outcome.large_started.value_or(Seconds::max()), each.large_starts_within);
    EXPECT_LE(outcome.mean_wait_of_small, each.mean_wait_of_small);
  }
}

}  // namespace
}  // namespace pliant::planner
