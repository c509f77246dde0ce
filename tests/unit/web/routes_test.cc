#include "operator/web/routes.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace pliant::web {
namespace {

ServerResponse Ask(const std::vector<HttpRoute>& routes, const std::string& path) {
  const auto route = std::ranges::find(routes, path, &HttpRoute::path);
  EXPECT_NE(route, routes.end()) << path;
  EXPECT_EQ(route->method, "GET");
  return route->handle({.method = "GET", .path = path});
}

TEST(OperatorRoutes, TellHowTheOperatorIs) {
  std::string not_ready = "still listing objects";
  std::string snapshot;
  const auto routes = OperatorRoutes({.metrics = [] { return std::string("up 1\n"); },
                                      .not_ready = [&] { return not_ready; },
                                      .snapshot = [&] { return snapshot; }});
  EXPECT_EQ(Ask(routes, "/healthz").status, 200);
  EXPECT_EQ(Ask(routes, "/metrics").body, "up 1\n");
  EXPECT_EQ(Ask(routes, "/readyz").status, 503);
  EXPECT_EQ(Ask(routes, "/readyz").body, "still listing objects\n");
  not_ready.clear();
  EXPECT_EQ(Ask(routes, "/readyz").status, 200);
  EXPECT_EQ(Ask(routes, "/debug/snapshot").status, 404);
  snapshot = "{}";
  EXPECT_EQ(Ask(routes, "/debug/snapshot").body, "{}");
}

}  // namespace
}  // namespace pliant::web
