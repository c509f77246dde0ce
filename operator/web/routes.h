#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/http_server.h"

namespace pliant::web {

// What the operator's web server shows. All are called on the event loop.
struct Sources {
  std::function<std::string()> metrics;    // in Prometheus' text format
  std::function<std::string()> not_ready;  // why it is not ready; "" if it is
  std::function<std::string()> snapshot;   // what the planner saw last, as JSON; "" if nothing yet
};

// GET /metrics, /healthz, /readyz and /debug/snapshot.
std::vector<HttpRoute> OperatorRoutes(Sources sources);

}  // namespace pliant::web
