#include "trainer/protocol/rounds_report.h"

#include <algorithm>
#include <set>
#include <string>

namespace pliant {

bool CanExchange(std::span<const std::optional<RoundsReport>> by_rank) {
  if (by_rank.size() < 2) return false;
  std::set<std::string> devices;
  return std::ranges::all_of(by_rank, [&](const std::optional<RoundsReport>& report) {
    return report && report->partner.version == by_rank.front()->partner.version &&
           devices.insert(report->partner.device).second;
  });
}

bool AllReady(std::span<const std::optional<RoundsReport>> by_rank) {
  return by_rank.size() > 1 &&
         std::ranges::all_of(by_rank, [](const std::optional<RoundsReport>& report) {
           return report && report->ready;
         });
}

}  // namespace pliant
