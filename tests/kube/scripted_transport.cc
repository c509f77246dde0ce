#include "tests/kube/scripted_transport.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pliant::kube {

void ScriptedTransport::Answer(HttpMethod method, std::string target_prefix,
                               Result<HttpResponse> answer) {
  const std::lock_guard lock(mutex_);
  script_.push_back({.method = method,
                     .target_prefix = std::move(target_prefix),
                     .stream = false,
                     .answer = std::move(answer)});
}

void ScriptedTransport::AnswerStream(std::string target_prefix, std::vector<std::string> lines,
                                     StreamEnd end) {
  const std::lock_guard lock(mutex_);
  script_.push_back({.method = HttpMethod::kGet,
                     .target_prefix = std::move(target_prefix),
                     .stream = true,
                     .answer = HttpResponse{.status = 200},
                     .lines = std::move(lines),
                     .end = end});
}

void ScriptedTransport::RefuseStream(std::string target_prefix, Result<HttpResponse> answer) {
  const std::lock_guard lock(mutex_);
  script_.push_back({.method = HttpMethod::kGet,
                     .target_prefix = std::move(target_prefix),
                     .stream = true,
                     .answer = std::move(answer)});
}

void ScriptedTransport::AnswerRest(std::function<Result<HttpResponse>(const HttpRequest&)> answer) {
  const std::lock_guard lock(mutex_);
  rest_ = std::move(answer);
}

std::vector<HttpRequest> ScriptedTransport::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool ScriptedTransport::done() const {
  const std::lock_guard lock(mutex_);
  return script_.empty();
}

bool ScriptedTransport::WaitUntilDone(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return script_.empty(); });
}

std::optional<ScriptedTransport::Scripted> ScriptedTransport::TakeScripted(
    const HttpRequest& request, bool stream) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(request);
  const auto found = std::ranges::find_if(script_, [&](const Scripted& scripted) {
    return scripted.method == request.method && scripted.stream == stream &&
           request.target.starts_with(scripted.target_prefix);
  });
  if (found == script_.end()) return std::nullopt;
  Scripted taken = std::move(*found);
  script_.erase(found);
  changed_.notify_all();
  return taken;
}

Result<HttpResponse> ScriptedTransport::Send(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  if (std::optional<Scripted> scripted = TakeScripted(request, /*stream=*/false)) {
    return std::move(scripted->answer);
  }
  std::function<Result<HttpResponse>(const HttpRequest&)> rest;
  {
    const std::lock_guard lock(mutex_);
    rest = rest_;
  }
  CHECK(rest, "no answer for " + std::string(ToString(request.method)) + " " + request.target);
  return rest(request);
}

Result<HttpResponse> ScriptedTransport::Stream(const HttpRequest& request, const LineSink& sink,
                                               Duration /*idle*/, std::stop_token stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  std::optional<Scripted> scripted = TakeScripted(request, /*stream=*/true);
  CHECK(scripted, "no stream for " + request.target);
  if (!scripted->answer || scripted->answer->status / 100 != 2) return std::move(scripted->answer);
  if (request.on_open) request.on_open();
  for (const std::string& line : scripted->lines) {
    if (!sink(line)) return std::move(scripted->answer);
  }
  switch (scripted->end) {
    case StreamEnd::kOrderly:
      break;
    case StreamEnd::kBroken:
      return Fail(ErrorCode::kUnavailable, "connection reset");
    case StreamEnd::kIdle:
      return Fail(ErrorCode::kTimeout, "nothing came for too long");
    case StreamEnd::kHold: {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [] { return false; });
      return Fail(ErrorCode::kCancelled, "stopped");
    }
  }
  return std::move(scripted->answer);
}

}  // namespace pliant::kube
