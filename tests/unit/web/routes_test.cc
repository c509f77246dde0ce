#include "operator/web/routes.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"

namespace pliant::web {
namespace {
using namespace std::chrono_literals;

const HttpRoute& RouteOf(const std::vector<HttpRoute>& routes, const std::string& path) {
  const auto route = std::ranges::find(routes, path, &HttpRoute::path);
  EXPECT_NE(route, routes.end()) << path;
  EXPECT_EQ(route->method, "GET");
  return *route;
}

TEST(ProbeRoutes, TellABusyLoopFromOneThatHangs) {
  struct Case {
    std::string name;
    Duration silent;
    std::string not_ready;
    int healthz;
    int readyz;
    std::string readyz_body;
  };
  const Case kCases[] = {
      {"it moves", 0s, "", 200, 200, "ok\n"},
      {"its caches are not in sync yet", 1s, "still listing objects", 200, 503,
       "still listing objects\n"},
      {"a plan that takes long", 30s, "", 200, 200, "ok\n"},
      {"it hangs", 31s, "", 503, 503, "the control loop has not moved for 31 s\n"},
      {"it hung before it was ready", 90s, "still listing objects", 503, 503,
       "the control loop has not moved for 90 s\n"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const TimePoint at{1h};
    const auto routes = ProbeRoutes([&] { return Pulse{.at = at, .not_ready = c.not_ready}; },
                                    [&] { return at + c.silent; });
    EXPECT_EQ(routes.size(), 2u);
    EXPECT_EQ(RouteOf(routes, "/healthz").handle({}).status, c.healthz);
    EXPECT_EQ(RouteOf(routes, "/readyz").handle({}).status, c.readyz);
    EXPECT_EQ(RouteOf(routes, "/readyz").handle({}).body, c.readyz_body);
  }
}

class TextRoutesTest : public testing::Test {
 protected:
  ServerResponse Ask(const std::vector<HttpRoute>& routes, const std::string& path,
                     const std::string& query = "") {
    ServerResponse got{.status = 0};
    RouteOf(routes, path).handle_later({.query = query}, [&](ServerResponse answer) {
      got = std::move(answer);
    });
    loop_.RunFor(1s);
    return got;
  }

  SimEventLoop loop_;
  std::string text_;
  CachedText cached_{loop_, 1s, [this](auto done) { done(text_); }};
  Explainer explain_;
  Cached<Explainer> explainer_{loop_, 1s, [this](auto done) { done(explain_); }};
};

TEST_F(TextRoutesTest, MetricsAreForThoseWhoAreLetIn) {
  const auto open = MetricsRoutes(cached_, nullptr);
  text_ = "up 1\n";
  EXPECT_EQ(Ask(open, "/metrics").body, "up 1\n");
  EXPECT_EQ(Ask(open, "/metrics").content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_FALSE(RouteOf(open, "/metrics").admit_later);
  EXPECT_TRUE(RouteOf(open, "/metrics").large);
  EXPECT_EQ(open.size(), 1u);

  const auto guarded = MetricsRoutes(cached_, [](std::string_view token, const auto& done) {
    done(token == "prometheus" ? Access::kGranted : Access::kUnknown);
  });
  Access access = Access::kGranted;
  RouteOf(guarded, "/metrics").admit_later("guess", [&](Access decided) { access = decided; });
  EXPECT_EQ(access, Access::kUnknown);
}

TEST_F(TextRoutesTest, TheSnapshotIsWhatWasPlannedLast) {
  const auto routes = DebugRoutes(cached_, explainer_);
  EXPECT_EQ(Ask(routes, "/debug/snapshot").status, 404);
  text_ = "{}";
  EXPECT_EQ(Ask(routes, "/debug/snapshot").body, "{}");
  EXPECT_EQ(Ask(routes, "/debug/snapshot").status, 200);
  EXPECT_TRUE(RouteOf(routes, "/debug/snapshot").large);
}

TEST_F(TextRoutesTest, ExplainsOneJob) {
  struct Case {
    std::string query;
    int status;
    std::string body;
  };
  const std::string malformed = "the query must be job=NAMESPACE/NAME\n";
  const Case kCases[] = {
      {"job=team-a/resnet", 200, "why team-a/resnet"},
      {"job=team-a%2Fresnet", 200, "why team-a/resnet"},
      {"job=team-a%2fresnet", 200, "why team-a/resnet"},
      {"job=team-a/gone", 404, "no such job\n"},
      {"job=", 400, "a job is NAMESPACE/NAME\n"},
      {"", 400, malformed},
      {"name=team-a/resnet", 400, malformed},
      {"job=team-a/resnet&job=team-a/gone", 400, malformed},
      {"job=team-a%", 400, malformed},
      {"job=team-a%2", 400, malformed},
      {"job=team-a%-1resnet", 400, malformed},
  };
  const auto routes = DebugRoutes(cached_, explainer_);
  EXPECT_EQ(Ask(routes, "/debug/explain", "job=team-a/resnet").status, 404);
  explain_ = [](std::string_view job) -> Result<std::string> {
    if (job == "team-a/resnet") return "why " + std::string(job);
    if (job.contains('/')) return Fail(ErrorCode::kNotFound, "no such job");
    return Invalid("a job is NAMESPACE/NAME");
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.query);
    const ServerResponse answer = Ask(routes, "/debug/explain", c.query);
    EXPECT_EQ(answer.status, c.status);
    EXPECT_EQ(answer.body, c.body);
    EXPECT_EQ(answer.content_type, "text/plain; charset=utf-8");
  }
}

}  // namespace
}  // namespace pliant::web
