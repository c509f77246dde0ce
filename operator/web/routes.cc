#include "operator/web/routes.h"

#include <charconv>
#include <optional>
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

ServerResponse Sentence(int status, const std::string& sentence) {
  return {.status = status, .body = sentence + "\n", .content_type = kText};
}

// "team-a%2Fresnet" → "team-a/resnet"; nullopt if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    unsigned char byte = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + digits.size()) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    at += 2;
  }
  return decoded;
}

ServerResponse ExplainAnswer(const Explainer& explain, std::string_view query) {
  constexpr std::string_view kJob = "job=";
  const std::optional<std::string> job = PercentDecoded(query);
  if (!job || !job->starts_with(kJob) || query.contains('&')) {
    return Sentence(400, "the query must be job=NAMESPACE/NAME");
  }
  if (!explain) return Sentence(404, "nothing was planned yet: another replica is the leader");
  const Result<std::string> text = explain(std::string_view(*job).substr(kJob.size()));
  if (text) return {.body = *text, .content_type = kText};
  return Sentence(text.error().code == ErrorCode::kNotFound ? 404 : 400, text.error().message);
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

std::vector<HttpRoute> DebugRoutes(CachedText& text, Cached<Explainer>& explainer) {
  return {
      {.method = "GET",
       .path = "/debug/snapshot",
       .handle_later =
           [&text](const ServerRequest&, std::function<void(ServerResponse)> done) {
             text.Get([done = std::move(done)](const std::string& snapshot) {
               done(snapshot.empty() ? ErrorResponse(404, "nothing was planned yet")
                                     : ServerResponse{.body = snapshot});
             });
           },
       .large = true},
      {.method = "GET",
       .path = "/debug/explain",
       .handle_later =
           [&explainer](const ServerRequest& request, std::function<void(ServerResponse)> done) {
             explainer.Get([query = request.query, done = std::move(done)](
                               const Explainer& explain) { done(ExplainAnswer(explain, query)); });
           },
       .large = true}};
}

}  // namespace pliant::web
