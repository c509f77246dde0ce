#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/cached_text.h"
#include "base/http_server.h"
#include "operator/web/loop_pulse.h"

namespace pliant::web {

// A loop that has said nothing for so long hangs; a plan for many jobs takes seconds.
inline constexpr Duration kHungAfter = std::chrono::seconds(30);

// GET /healthz: the control loop moves; it may be busy. GET /readyz: and it is ready.
std::vector<HttpRoute> ProbeRoutes(std::function<Pulse()> pulse, std::function<TimePoint()> now);

// GET /metrics, for those whom `admit` lets in; none: for everybody. `text` outlives the routes.
std::vector<HttpRoute> MetricsRoutes(CachedText& text, decltype(HttpRoute::admit_later) admit);

// GET /debug/snapshot: what the planner saw last, as JSON; "" if nothing yet. `text` outlives the
// routes.
std::vector<HttpRoute> DebugRoutes(CachedText& text);

}  // namespace pliant::web
