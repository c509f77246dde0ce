// The whole operator under random faults, on virtual time. Without arguments it runs the kept
// seeds, some random ones, and stories in which the leader dies at one of its writes: every fifth
// write to the API server, every second plan to a coordinator, the last of each included.
// `--seed=N` replays one seed with its log; `--seeds=N` (or PLIANT_OPERATOR_SEEDS) runs N seeds,
// `--first=N` starts from seed N; `--every-write` leaves no write out (`./dev test all` uses it). A
// change that keeps the operator's behaviour also keeps the lines that every world appends to the
// file named by PLIANT_TRACES (tests/simulation/trace.h).

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/operator/seeds.h"

namespace pliant::operator_sim {
namespace {

std::optional<std::uint64_t> only_seed;
std::uint64_t first_seed = 1;
std::uint64_t seeds = 30;
int writes_between_deaths = 5;  // --every-write: 1, as of plans
int plans_between_deaths = 2;

// Runs one seed. On a failure prints how to replay it.
bool Simulate(std::uint64_t seed) {
  const std::string story = RunSeed(seed);
  if (only_seed) std::cout << "seed " << seed << ": " << story << "\n";
  if (!testing::Test::HasFailure()) return true;
  std::cout << "operator_simulation_test --seed=" << seed << "\n";
  return false;
}

// Seeds that found bugs, kept permanently.
constexpr std::uint64_t kRegressions[] = {14,  31,  211, 213, 294,  403, 421,
                                          604, 652, 805, 844, 1003, 1128};

TEST(OperatorSimulation, SeedsThatOnceFailed) {
  if (only_seed) GTEST_SKIP() << "only one seed was requested";
  for (const std::uint64_t seed : kRegressions) {
    if (!Simulate(seed)) return;
  }
}

TEST(OperatorSimulation, RandomFaultsThenNone) {
  if (only_seed) {
    Simulate(*only_seed);
    return;
  }
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    if (!Simulate(seed)) return;
  }
}

TEST(OperatorSimulation, ASeedIsReplayedExactly) {
  if (only_seed) GTEST_SKIP() << "only one seed was requested";
  EXPECT_EQ(RunSeed(5), RunSeed(5));
}

TEST(OperatorSimulation, AFailingJobHarmsNoOther) {
  if (only_seed) GTEST_SKIP() << "only one seed was requested";
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RunFailingNeighbours(seed);
    if (HasFailure()) return;
  }
}

TEST(OperatorSimulation, ALeaderMayDieAtEachOfItsWrites) {
  if (only_seed) GTEST_SKIP() << "only one seed was requested";
  const int writes = RunDeathAtWrite(std::nullopt, false);
  ASSERT_GT(writes, 30);
  for (int write = writes; write > 0; write -= writes_between_deaths) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE(testing::Message() << "write " << write << (after ? ", after" : ", before"));
      RunDeathAtWrite(write, after);
      if (HasFailure()) return;
    }
  }
}

TEST(OperatorSimulation, ALeaderMayDieAtEachPlanThatItSends) {
  if (only_seed) GTEST_SKIP() << "only one seed was requested";
  const int plans = RunDeathAtPlan(std::nullopt, false);
  ASSERT_GT(plans, 5);
  for (int plan = plans; plan > 0; plan -= plans_between_deaths) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE(testing::Message() << "plan " << plan << (after ? ", after" : ", before"));
      RunDeathAtPlan(plan, after);
      if (HasFailure()) return;
    }
  }
}

std::optional<std::uint64_t> Number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> Value(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name)) return std::nullopt;
  return Number(argument.substr(name.size()));
}

}  // namespace
}  // namespace pliant::operator_sim

int main(int argc, char** argv) {
  namespace sim = pliant::operator_sim;
  testing::InitGoogleTest(&argc, argv);
  if (const char* count = std::getenv("PLIANT_OPERATOR_SEEDS")) {
    sim::seeds = sim::Number(count).value_or(sim::seeds);
  }
  for (int i = 1; i < argc; ++i) {
    if (const auto seed = sim::Value(argv[i], "--seed=")) {
      sim::only_seed = *seed;
    } else if (const auto count = sim::Value(argv[i], "--seeds=")) {
      sim::seeds = *count;
    } else if (argv[i] == std::string_view("--every-write")) {
      sim::writes_between_deaths = 1;
      sim::plans_between_deaths = 1;
    } else if (const auto first = sim::Value(argv[i], "--first=")) {
      sim::first_seed = *first;
    } else {
      std::cerr << "unknown argument " << argv[i] << "\n";
      return 2;
    }
  }
  pliant::log::Configure(pliant::log::Format::kText,
                         sim::only_seed ? pliant::log::Level::kInfo : pliant::log::Level::kError);
  return RUN_ALL_TESTS();
}
