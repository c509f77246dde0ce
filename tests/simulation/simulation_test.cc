// The membership protocol under random faults, on virtual time. Without arguments it runs some
// hundred seeds. `--seed=N` replays one seed with its log; `--seeds=N` runs N seeds, `--first=N`
// starts from seed N. PLIANT_SIMULATION_SEEDS is the default number of seeds. A failure that a seed
// finds becomes a story, because a seed depends on the order of all posted tasks and drawn numbers:
// after the next change the same seed finds something else, or nothing.

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/seeds.h"

namespace pliant::sim {
namespace {

std::optional<std::uint64_t> only_seed;
std::uint64_t first_seed = 1;
std::uint64_t seeds = 500;

// Runs one seed. On a failure prints how to replay it.
bool Simulate(std::uint64_t seed) {
  const std::string story = RunSeed(seed);
  if (only_seed) std::cout << "seed " << seed << ": " << story << "\n";
  if (!testing::Test::HasFailure()) return true;
  std::cout << "simulation_test --seed=" << seed << "\n";
  return false;
}

TEST(Simulation, RandomFaultsThenNone) {
  if (only_seed) {
    Simulate(*only_seed);
    return;
  }
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    if (!Simulate(seed)) return;
  }
}

std::optional<std::uint64_t> Value(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name)) return std::nullopt;
  argument.remove_prefix(name.size());
  std::uint64_t value = 0;
  const char* const end = argument.data() + argument.size();
  if (std::from_chars(argument.data(), end, value).ptr != end) return std::nullopt;
  return value;
}

}  // namespace
}  // namespace pliant::sim

int main(int argc, char** argv) {
  using pliant::sim::Value;
  testing::InitGoogleTest(&argc, argv);
  if (const char* const count = std::getenv("PLIANT_SIMULATION_SEEDS")) {
    pliant::sim::seeds = Value(count, "").value_or(pliant::sim::seeds);
  }
  for (int i = 1; i < argc; ++i) {
    if (const auto seed = Value(argv[i], "--seed=")) {
      pliant::sim::only_seed = *seed;
    } else if (const auto count = Value(argv[i], "--seeds=")) {
      pliant::sim::seeds = *count;
    } else if (const auto first = Value(argv[i], "--first=")) {
      pliant::sim::first_seed = *first;
    } else {
      std::cerr << "unknown argument " << argv[i] << "\n";
      return 2;
    }
  }
  pliant::log::Configure(pliant::log::Format::kText, pliant::sim::only_seed
                                                         ? pliant::log::Level::kInfo
                                                         : pliant::log::Level::kError);
  return RUN_ALL_TESTS();
}
