#include "simulator/option_values.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>

#include "base/format.h"
#include "simulator/inputs/values.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

// More frequent failures of a node would leave it no time to train.
constexpr std::int64_t kMinBetween = 60'000;
constexpr std::string_view kRestart = "restart:";

Result<std::int64_t> ParseWholeSeconds(std::string_view text) {
  ASSIGN_OR_RETURN(const std::int64_t millis, ParseMillis(text));
  if (millis % 1000 == 0) return millis;
  return Invalid(Format("is {}; write whole seconds, for example 30", Shown(text)));
}

}  // namespace

Result<std::variant<LiveResizing, Restarting>> ParseResize(std::string_view text) {
  if (text == "live") return LiveResizing{};
  if (!text.starts_with(kRestart)) {
    return Invalid(
        Format("is {}; write live, or restart:30 for jobs that restart in 30 s", Shown(text)));
  }
  ASSIGN_OR_RETURN(const std::int64_t pause, ParseWholeSeconds(text.substr(kRestart.size())));
  return Restarting{.pause = pause};
}

Result<std::int64_t> ParseEvery(std::string_view text) { return ParseWholeSeconds(text); }

Result<Failures> ParseFailures(std::string_view text) {
  Failures failures;
  std::set<std::string_view> found;
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view pair(part.begin(), part.end());
    const std::string_view key = pair.substr(0, pair.find('='));
    const bool is_known = key == "mtbf" || key == "repair";
    if (!is_known || key.size() == pair.size() || !found.insert(key).second) {
      return Invalid(
          Format("is {}; write mtbf=6h,repair=10m: the mean time between failures of a "
                 "node, and how long it is away",
                 Shown(text)));
    }
    const bool is_mean = key == "mtbf";
    const auto time = ParseMillis(pair.substr(key.size() + 1), is_mean ? kMinBetween : 1);
    if (!time) return Invalid(Format("has a {} that {}", key, time.error().message));
    (is_mean ? failures.mean_between : failures.repair) = *time;
  }
  if (found.contains("mtbf")) return failures;
  return Invalid(Format("is {}; add the mean time between failures of a node: mtbf=6h,repair=10m",
                        Shown(text)));
}

}  // namespace pliant::simulator
