#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/cached.h"
#include "base/http_server.h"
#include "operator/web/loop_pulse.h"

namespace pliant::web {

// A loop that has been silent for longer than this counts as hung; a plan for many jobs takes
// seconds.
inline constexpr Duration kHungAfter = std::chrono::seconds(30);

// GET /healthz: the control loop runs; it may be busy. GET /readyz: it runs and is ready.
std::vector<HttpRoute> ProbeRoutes(std::function<Pulse()> pulse, std::function<TimePoint()> now);

// GET /metrics, for requests that `admit` accepts; empty `admit`: for everyone. `text` outlives the
// routes.
std::vector<HttpRoute> MetricsRoutes(CachedText& text, decltype(HttpRoute::admit_later) admit);

// GET /debug/snapshot: the planner's last input, as JSON; 404 while `text` is empty. `text`
// outlives the routes.
std::vector<HttpRoute> DebugRoutes(CachedText& text);

}  // namespace pliant::web
