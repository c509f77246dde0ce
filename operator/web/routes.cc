#include "operator/web/routes.h"

#include <utility>

#include "base/format.h"
#include "base/metric_family.h"

namespace pliant::web {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

// Why the loop counts as hung; "" if it does not.
std::string Hangs(const Pulse& pulse, TimePoint now) {
  const Duration silent = now - pulse.at;
  if (silent <= kHungAfter) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(silent);
  return Format("the control loop has not moved for {} s", seconds.count());
}

ServerResponse ProbeAnswer(const std::string& wrong) {
  if (wrong.empty()) return {.body = "ok\n", .content_type = kText};
  return {.status = 503, .body = wrong + "\n", .content_type = kText};
}

}  // namespace

std::vector<HttpRoute> ProbeRoutes(std::function<Pulse()> pulse, std::function<TimePoint()> now) {
  return {
      {.method = "GET",
       .path = "/healthz",
       .handle = [pulse, now](const ServerRequest&) { return ProbeAnswer(Hangs(pulse(), now())); }},
      {.method = "GET", .path = "/readyz", .handle = [pulse, now](const ServerRequest&) {
         const Pulse last = pulse();
         const std::string hangs = Hangs(last, now());
         return ProbeAnswer(hangs.empty() ? last.not_ready : hangs);
       }}};
}

std::vector<HttpRoute> MetricsRoutes(CachedText& text, decltype(HttpRoute::admit_later) admit) {
  return {{.method = "GET",
           .path = "/metrics",
           .handle_later =
               [&text](const ServerRequest&, std::function<void(ServerResponse)> done) {
                 text.Get([done = std::move(done)](const std::string& metrics) {
                   done({.body = metrics, .content_type = kMetricsContentType});
                 });
               },
           .admit_later = std::move(admit),
           .large = true}};
}

std::vector<HttpRoute> DebugRoutes(CachedText& text) {
  return {{.method = "GET",
           .path = "/debug/snapshot",
           .handle_later =
               [&text](const ServerRequest&, std::function<void(ServerResponse)> done) {
                 text.Get([done = std::move(done)](const std::string& snapshot) {
                   done(snapshot.empty() ? ErrorResponse(404, "nothing was planned yet")
                                         : ServerResponse{.body = snapshot});
                 });
               },
           .large = true}};
}

}  // namespace pliant::web
