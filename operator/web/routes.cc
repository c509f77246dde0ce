#include "operator/web/routes.h"

#include <utility>

#include "base/metric_family.h"

namespace pliant::web {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

HttpRoute Get(std::string path, std::function<ServerResponse()> answer) {
  return {.method = "GET",
          .path = std::move(path),
          .handle = [answer = std::move(answer)](const ServerRequest&) { return answer(); }};
}

}  // namespace

std::vector<HttpRoute> OperatorRoutes(Sources sources) {
  std::vector<HttpRoute> routes;
  routes.push_back(Get("/metrics", [text = std::move(sources.metrics)]() -> ServerResponse {
    return {.body = text(), .content_type = kMetricsContentType};
  }));
  // That it is answered on the event loop says that the loop moves.
  routes.push_back(
      Get("/healthz", []() -> ServerResponse { return {.body = "ok\n", .content_type = kText}; }));
  routes.push_back(Get("/readyz", [not_ready = std::move(sources.not_ready)]() -> ServerResponse {
    const std::string why = not_ready();
    if (why.empty()) return {.body = "ok\n", .content_type = kText};
    return {.status = 503, .body = why + "\n", .content_type = kText};
  }));
  routes.push_back(
      Get("/debug/snapshot", [snapshot = std::move(sources.snapshot)]() -> ServerResponse {
        std::string text = snapshot();
        if (text.empty()) return ErrorResponse(404, "nothing was planned yet");
        return {.body = std::move(text)};
      }));
  return routes;
}

}  // namespace pliant::web
