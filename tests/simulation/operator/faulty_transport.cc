#include "tests/simulation/operator/faulty_transport.h"

namespace pliant::operator_sim {
namespace {

using kube::HttpResponse;

constexpr int kLinesBeforeACut = 2;

Error CutOff() { return {ErrorCode::kUnavailable, "cut off"}; }

}  // namespace

Result<HttpResponse> FaultyTransport::Send(const kube::HttpRequest& request, std::stop_token stop) {
  if (life_.over()) return std::unexpected(CutOff());
  Result<HttpResponse> answer = Exchange(request, std::move(stop));
  observe_(request, answer);
  return answer;
}

Result<HttpResponse> FaultyTransport::Stream(const kube::HttpRequest& request,
                                             const kube::LineSink& sink, Duration idle,
                                             std::stop_token stop) {
  if (life_.over()) return std::unexpected(CutOff());
  Result<HttpResponse> answer = Watch(request, sink, idle, std::move(stop));
  observe_(request, answer);
  return answer;
}

Result<HttpResponse> FaultyTransport::Exchange(const kube::HttpRequest& request,
                                               std::stop_token stop) {
  const Disposition fate = decide_(request);
  if (const auto* answer = std::get_if<HttpResponse>(&fate)) return *answer;
  const Fault fault = std::get<Fault>(fate);
  switch (fault) {
    case Fault::kCut:
      return std::unexpected(CutOff());
    case Fault::kDeath:
      life_.End();
      return std::unexpected(CutOff());
    case Fault::kNone:
    case Fault::kCutDone:
    case Fault::kLate:
    case Fault::kDeathDone:
      break;
  }
  Result<HttpResponse> answer = server_->Send(request, std::move(stop));
  if (request.method != kube::HttpMethod::kGet) ++writes_;
  if (fault == Fault::kDeathDone) life_.End();
  if (fault == Fault::kLate) return Fail(ErrorCode::kTimeout, "no answer in time");
  if (fault != Fault::kNone) return std::unexpected(CutOff());
  return answer;
}

Result<HttpResponse> FaultyTransport::Watch(const kube::HttpRequest& request,
                                            const kube::LineSink& sink, Duration idle,
                                            std::stop_token stop) {
  const Disposition fate = decide_(request);
  if (const auto* refusal = std::get_if<HttpResponse>(&fate)) return *refusal;
  const Fault fault = std::get<Fault>(fate);
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
