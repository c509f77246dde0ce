#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cached.h"
#include "base/http_server.h"
#include "base/result.h"
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

// Explains the last plan to people: why the job has its learners. `job` is NAMESPACE/NAME. kInvalid
// if it is not, kNotFound if the plan lacks the job. Empty while nothing was planned.
using Explainer = std::function<Result<std::string>(std::string_view job)>;

// GET /debug/snapshot: the last plan with its input, as JSON; 404 while `text` is empty. GET
// /debug/explain?job=NAMESPACE/NAME. Both arguments outlive the routes.
std::vector<HttpRoute> DebugRoutes(CachedText& text, Cached<Explainer>& explainer);

}  // namespace pliant::web
