#include "simulator/run_policy.h"

#include <array>
#include <cstddef>

#include "base/format.h"
#include "simulator/model/csv.h"
#include "simulator/nearest.h"

namespace pliant::simulator {
namespace {

using planner::QueuePolicy;

struct Known {
  std::string_view name;
  std::variant<AsWritten, QueuePolicy, Baseline> what;
};

constexpr std::array kKnown = {
    Known{"FairShare", QueuePolicy::kFairShare}, Known{"Throughput", QueuePolicy::kThroughput},
    Known{"Priority", QueuePolicy::kPriority},   Known{"Fifo", QueuePolicy::kFifo},
    Known{"tiresias", Baseline::kTiresias},      Known{"optimus", Baseline::kOptimus},
    Known{"strict", Baseline::kStrict},          Known{"as-written", AsWritten{}},
};

}  // namespace

Result<RunPolicy> ParsePolicy(std::string_view text) {
  std::array<std::string_view, kKnown.size()> names;
  std::string listed;
  for (std::size_t at = 0; at < kKnown.size(); ++at) {
    if (kKnown[at].name == text) return RunPolicy{std::string(text), kKnown[at].what};
    names[at] = kKnown[at].name;
    listed.append(listed.empty() ? "" : ", ").append(names[at]);
  }
  return Invalid(Format("there is no policy {}; did you mean {}? The policies are {}", Shown(text),
                        Nearest(text, names), listed));
}

}  // namespace pliant::simulator
