// Runs 64 published simulations again: Tiresias and Optimus, each with 8 workloads of 4 loads.
// Every completion time must equal the published one. The last line says how many do.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "simulator/baselines/optimus.h"
#include "simulator/baselines/tiresias.h"
#include "simulator/model/read_profiles.h"
#include "simulator/model/workload.h"
#include "simulator/rounds/round_engine.h"
#include "tests/fidelity/published.h"

namespace pliant::simulator {
namespace {

constexpr const char* kLoads[] = {"0.5", "1.0", "1.5", "2.0"};
constexpr int kWorkloads = 8;
constexpr std::size_t kMaxListed = 10;

struct Tally {
  int equal = 0;
  int all = 0;
  std::vector<std::string> differences;  // the first ones
};

struct Baseline {
  std::string_view name;
  std::unique_ptr<RoundPolicy> (*make)();
  std::int64_t Published::* published;
};

template <typename Policy>
std::unique_ptr<RoundPolicy> Make() {
  return std::make_unique<Policy>();
}

const Baseline kBaselines[] = {
    {.name = "tiresias", .make = Make<Tiresias>, .published = &Published::tiresias},
    {.name = "optimus", .make = Make<Optimus>, .published = &Published::optimus},
};

// The published figures are means of the workloads' means.
struct Means {
  double simulated = 0;
  double published = 0;
};

struct Load {
  const Profiles& profiles;
  std::filesystem::path data;
  std::string load;
  PublishedTimes published;
};

Result<Means> Compare(const Load& load, int workload, const Baseline& baseline, Tally& tally) {
  const auto path = load.data / ("workloads-" + load.load) / Format("workload-{}.csv", workload);
  ASSIGN_OR_RETURN(const std::vector<JobSpec> jobs, ReadWorkload(path, load.profiles));
  const std::unique_ptr<RoundPolicy> policy = baseline.make();
  ASSIGN_OR_RETURN(const std::vector<JobOutcome> outcomes,
                   RunRounds(load.profiles, jobs, RoundOptions{}, *policy));
  Means sums;
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const auto found = load.published.find({workload, jobs[index].name});
    if (found == load.published.end()) {
      return Invalid(
          Format("{}: the job {} has no published time; add it", path.string(), jobs[index].name));
    }
    const std::int64_t expected = found->second.*baseline.published;
    const std::int64_t got = outcomes[index].completed_seconds - jobs[index].submitted_seconds;
    sums.simulated += static_cast<double>(got);
    sums.published += static_cast<double>(expected);
    ++tally.all;
    if (got == expected) {
      ++tally.equal;
    } else if (tally.differences.size() < kMaxListed) {
      tally.differences.push_back(
          Format("{}, load {}, workload {}, job {}: expected {} s, got {} s", baseline.name,
                 load.load, workload, jobs[index].name, expected, got));
    }
  }
  const auto count = static_cast<double>(jobs.size());
  return Means{.simulated = sums.simulated / count, .published = sums.published / count};
}

Status RunAll(const std::filesystem::path& data, Tally& tally) {
  ASSIGN_OR_RETURN(const Profiles profiles, ReadProfiles(data));
  std::printf("mean completion time in s     simulated  published\n");
  for (const char* const name : kLoads) {
    Load load{.profiles = profiles, .data = data, .load = name, .published = {}};
    ASSIGN_OR_RETURN(load.published,
                     ReadPublished(data / Format("completion-times-{}.csv", load.load)));
    for (const Baseline& baseline : kBaselines) {
      Means sums;
      for (int workload = 1; workload <= kWorkloads; ++workload) {
        ASSIGN_OR_RETURN(const Means means, Compare(load, workload, baseline, tally));
        sums.simulated += means.simulated;
        sums.published += means.published;
      }
      std::printf("%s", Format("{:<10} load {}              {:>10.1f} {:>10.1f}\n", baseline.name,
                               load.load, sums.simulated / kWorkloads, sums.published / kWorkloads)
                            .c_str());
    }
  }
  return {};
}

int Main() {
  Tally tally;
  const Status status =
      RunAll(std::filesystem::path(PLIANT_SOURCE_DIR) / "tests/data/pollux", tally);
  if (!status) {
    std::printf("%s\n", status.error().message.c_str());
    return 1;
  }
  for (const std::string& difference : tally.differences) std::printf("%s\n", difference.c_str());
  std::printf("%d of %d completion times equal\n", tally.equal, tally.all);
  return tally.equal == tally.all ? 0 : 1;
}

}  // namespace
}  // namespace pliant::simulator

int main() {
  try {
    return pliant::simulator::Main();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
