#include "tests/simulation/operator/faulty_transport.h"

namespace pliant::operator_sim {
namespace {

using kube::HttpResponse;

constexpr int kLinesBeforeACut = 2;

Error CutOff() { return {ErrorCode::kUnavailable, "cut off"}; }

HttpResponse Throttled() {
  return {.status = 429, .headers = {{"Retry-After", "1"}}, .body = "too many requests"};
}

HttpResponse Unwell() { return {.status = 503, .headers = {}, .body = "the server is unwell"}; }

}  // namespace

Result<HttpResponse> FaultyTransport::Send(const kube::HttpRequest& request, std::stop_token stop) {
  if (life_.over()) return std::unexpected(CutOff());
  const Fault fault = decide_(request);
  switch (fault) {
    case Fault::kThrottle:
      return Throttled();
    case Fault::kServer:
      return Unwell();
    case Fault::kCut:
      return std::unexpected(CutOff());
    case Fault::kDeath:
      life_.End();
      return std::unexpected(CutOff());
    case Fault::kNone:
    case Fault::kCutDone:
    case Fault::kDeathDone:
      break;
  }
  Result<HttpResponse> answer = server_->Send(request, std::move(stop));
  if (request.method != kube::HttpMethod::kGet) ++writes_;
  if (fault == Fault::kDeathDone) life_.End();
  if (fault != Fault::kNone) return std::unexpected(CutOff());
  return answer;
}

Result<HttpResponse> FaultyTransport::Stream(const kube::HttpRequest& request,
                                             const kube::LineSink& sink, Duration idle,
                                             std::stop_token stop) {
  if (life_.over()) return std::unexpected(CutOff());
  const Fault fault = decide_(request);
  if (fault == Fault::kThrottle) return Throttled();
  if (fault == Fault::kServer) return Unwell();
  int lines_left = fault == Fault::kNone ? -1 : kLinesBeforeACut;
  bool cut = false;
  auto answer = server_->Stream(
      request,
      [&](std::string_view line) {
        cut = lines_left-- == 0;
        return !cut && sink(line);
      },
      idle, std::move(stop));
  if (fault != Fault::kNone) return std::unexpected(CutOff());
  return answer;
}

}  // namespace pliant::operator_sim
