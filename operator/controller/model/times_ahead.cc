#include "operator/controller/model/times_ahead.h"

#include <utility>

namespace pliant::controller {

void ObserveTimes(const api::JobStatus& status, api::WallTime now, TimesAhead& times) {
  const TimesAhead before = std::exchange(times, {});
  for (const auto& time :
       {status.share.start_time, status.share.resize_time, status.completion_time}) {
    if (!time) continue;
    if (const auto known = before.find(*time); known != before.end()) {
      times.insert(*known);
    } else if (*time > now) {
      times.emplace(*time, now);
    }
  }
}

}  // namespace pliant::controller
