// Measures how long a rank takes to make its part of the sum of gradients after a change of the
// members: its plan, and the first tick by it. Prints lines "NAME SECONDS".

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "trainer/collective/reduction.h"
#include "trainer/collective/reduction_plan.h"

namespace pliant {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Measure(const std::string& name, int shards, int ranks, int ranks_a_host, int repeats) {
  const ShardMap map = AssignShards(shards, ranks);
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < ranks; ++rank) host_of_rank.push_back(rank / ranks_a_host);
  constexpr std::size_t kElements = 25 << 20;  // a model of 100 MiB
  Reduction reduction(kElements, [](int, const Frame&) {});
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    auto plan = std::make_shared<const ReductionPlan>(map, host_of_rank, i % ranks);
    std::printf("%s made %.9f\n", name.c_str(), SecondsSince(begin));
    const auto planned = std::chrono::steady_clock::now();
    reduction.Begin({.tick = static_cast<Tick>(i), .plan = std::move(plan)});
    std::printf("%s first-tick %.9f\n", name.c_str(), SecondsSince(planned));
  }
}

}  // namespace
}  // namespace pliant

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 1;
  pliant::Measure("64-shards/16", 64, 16, 8, repeats);
  pliant::Measure("4096-shards/1024", 4096, 1024, 8, repeats);
  pliant::Measure("4096-shards/1024/a-host-each", 4096, 1024, 1, repeats);
}
