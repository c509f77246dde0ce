#include "trainer/coordinator/coordinator_service.h"

#include <chrono>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/file.h"
#include "base/log.h"
#include "base/overloaded.h"
#include "base/real_event_loop.h"
#include "base/secret.h"

namespace pliant {
namespace {

Result<std::string> ReadToken(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(std::string token, ReadFile(path));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) return Invalid(path.string() + " is empty: it must hold a token");
  return token;
}

int StatusOf(const Error& error) {
  if (error.code == ErrorCode::kConflict) return 409;
  return error.code == ErrorCode::kInvalid ? 400 : 500;
}

}  // namespace

Result<CoordinatorTokens> ReadCoordinatorTokens(const std::filesystem::path& folder) {
  CoordinatorTokens tokens;
  ASSIGN_OR_RETURN(tokens.operator_token, ReadToken(folder / "operator-token"));
  ASSIGN_OR_RETURN(tokens.learner_token, ReadToken(folder / "learner-token"));
  return tokens;
}

CoordinatorService::CoordinatorService(RealEventLoop& loop, const std::string& job,
                                       CoordinatorOptions options, CoordinatorTokens tokens,
                                       CounterFile counter_file,
                                       std::function<void(const Error&)> on_fatal)
    : loop_(loop),
      tokens_(std::move(tokens)),
      counter_file_(std::move(counter_file)),
      on_fatal_(std::move(on_fatal)),
      metrics_(job),
      core_(options, loop.Now()),
      metrics_text_(loop, std::chrono::seconds(1), [this](auto done) {
        done(metrics_.Serialize(core_.progress(), connections_.size()));
      }) {}

void CoordinatorService::Start() {
  loop_.PostAfter(CoordinatorCore::kPollInterval, [this] { OnTimer(); });
}

std::vector<HttpRoute> CoordinatorService::ApiRoutes() {
  const auto operator_only = [this](std::string_view token) {
    if (ConstantTimeEquals(token, tokens_.operator_token)) return Access::kGranted;
    return ConstantTimeEquals(token, tokens_.learner_token) ? Access::kForbidden : Access::kUnknown;
  };
  const auto learner_only = [this](std::string_view token) {
    if (ConstantTimeEquals(token, tokens_.learner_token)) return Access::kGranted;
    return ConstantTimeEquals(token, tokens_.operator_token) ? Access::kForbidden
                                                             : Access::kUnknown;
  };
  const auto both = [this](std::string_view token) {
    const bool known = ConstantTimeEquals(token, tokens_.operator_token) ||
                       ConstantTimeEquals(token, tokens_.learner_token);
    return known ? Access::kGranted : Access::kUnknown;
  };
  return {
      {.method = "PUT",
       .path = "/v1/plan",
       .handle = [this](const ServerRequest& request) { return TakePlan(request); },
       .admit = operator_only},
      {.method = "GET",
       .path = "/v1/progress",
       .handle = [this](const ServerRequest&) { return ShowProgress(); },
       .admit = both},
      {.method = "GET",
       .path = "/v1/learner",
       .admit = learner_only,
       .accept = [this](std::shared_ptr<WebSocket> socket) { return Accept(std::move(socket)); }}};
}

std::vector<HttpRoute> CoordinatorService::StatusRoutes() {
  return {{.method = "GET",
           .path = "/progress",
           .handle = [this](const ServerRequest&) { return ShowProgress(); }},
          {.method = "GET",
           .path = "/metrics",
           .handle_later = [this](const ServerRequest&, std::function<void(ServerResponse)> done) {
             metrics_text_.Get([done = std::move(done)](const std::string& text) {
               done({.body = text, .content_type = kMetricsContentType});
             });
           }}};
}

// The event loop answers, so an answer shows that the loop is running.
std::vector<HttpRoute> CoordinatorService::ProbeRoutes() {
  return {{.method = "GET", .path = "/healthz", .handle = [](const ServerRequest&) {
             return ServerResponse{.body = "ok\n", .content_type = "text/plain; charset=utf-8"};
           }}};
}

ServerResponse CoordinatorService::TakePlan(const ServerRequest& request) {
  auto plan = DecodePlan(request.body);
  if (!plan) {
    metrics_.CountRefusedPlan();
    return ErrorResponse(400, plan.error().message);
  }
  auto effects = core_.SetPlan(*plan, loop_.Now());
  if (!effects) {
    metrics_.CountRefusedPlan();
    return ErrorResponse(StatusOf(effects.error()), effects.error().message);
  }
  Do(*effects);
  return ShowProgress();
}

ServerResponse CoordinatorService::ShowProgress() const {
  return {.body = Encode(core_.progress()) + "\n"};
}

WebSocketCallbacks CoordinatorService::Accept(std::shared_ptr<WebSocket> socket) {
  const ConnectionId id = ++last_connection_;
  connections_.emplace(id, std::move(socket));
  return {.on_message = [this, id](std::string text) { OnMessage(id, text); },
          .on_closed = [this, id](std::string_view reason) { OnClosed(id, reason); }};
}

void CoordinatorService::OnMessage(ConnectionId id, std::string_view text) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end() || failed_) return;
  const auto message = DecodeLearnerMessage(text);
  if (!message) {
    metrics_.CountRefusedMessage();
    log::Warning("cannot decode a learner's message",
                 {{"peer", connection->second->peer()}, {"error", message.error().message}});
    connection->second->Close(message.error().message);
    return;
  }
  metrics_.CountMessage(NameOf(*message));
  LogMessage(id, *message);
  Do(core_.OnMessage(id, *message, loop_.Now()));
}

void CoordinatorService::OnClosed(ConnectionId id, std::string_view reason) {
  if (connections_.erase(id) == 0) return;  // the core closed it
  log::Info("connection closed", {{"connection", id}, {"reason", reason}});
  Do(core_.OnDisconnected(id, loop_.Now()));
}

void CoordinatorService::OnTimer() {
  if (failed_) return;
  Do(core_.OnTimer(loop_.Now()));
  LogState();
  loop_.PostAfter(CoordinatorCore::kPollInterval, [this] { OnTimer(); });
}

void CoordinatorService::Do(const CoordinatorEffects& effects) {
  for (const CoordinatorEffect& effect : effects) {
    if (failed_) return;
    std::visit(Overloaded{[this](const PersistCounter& persist) {
                            const Status written = counter_file_.Write(persist.counter);
                            if (written) return;
                            failed_ = true;
                            on_fatal_(InContext("persist the membership counter", written.error()));
                          },
                          [this](const SendMessage& send) {
                            const auto found = connections_.find(send.connection);
                            if (found == connections_.end()) return;
                            LogEffect(send);
                            found->second->Send(Encode(send.message));
                          },
                          [this](const CloseConnection& close) {
                            const auto found = connections_.find(close.connection);
                            if (found == connections_.end()) return;
                            found->second->Close("no longer needed");
                            connections_.erase(found);
                          }},
               effect);
  }
}

void CoordinatorService::LogMessage(ConnectionId id, const LearnerMessage& message) const {
  std::visit(
      Overloaded{
          [id](const Hello& hello) {
            log::Info("learner is ready", {{"learner", ToString(hello.learner)},
                                           {"connection", id},
                                           {"address", hello.address},
                                           {"ticks", hello.applied_ticks}});
          },
          [id](const Leaving& leaving) {
            log::Info("learner wants to leave",
                      {{"connection", id}, {"graceSeconds", leaving.grace_seconds}});
          },
          [id](const Lost& lost) {
            log::Warning("learner aborted a tick",
                         {{"connection", id},
                          {"membership", ToString(lost.membership)},
                          {"tick", lost.tick},
                          {"accused", lost.accused.empty() ? "" : ToString(lost.accused.front())},
                          {"cause", lost.cause}});
          },
          [id](const auto& other) {
            log::Debug("message", {{"connection", id}, {"type", NameOf(LearnerMessage(other))}});
          }},
      message);
}

void CoordinatorService::LogEffect(const SendMessage& send) {
  const auto log_membership = [](std::string_view message, const Membership& membership) {
    std::string members;
    for (const Member& member : membership.members) {
      members += (members.empty() ? "" : ", ") + member.id.name;
    }
    log::Info(message, {{"membership", ToString(membership.id)},
                        {"size", membership.learners()},
                        {"members", members}});
  };
  // One line per membership, not per member.
  if (const auto* const prepare = std::get_if<Prepare>(&send.message)) {
    if (std::exchange(logged_proposal_, prepare->membership.id) != prepare->membership.id) {
      log_membership("membership proposed", prepare->membership);
    }
  } else if (const auto* const recover = std::get_if<Recover>(&send.message)) {
    if (std::exchange(logged_proposal_, recover->membership.id) != recover->membership.id) {
      log_membership("recovery with the remaining members", recover->membership);
    }
  }
}

void CoordinatorService::LogState() {
  const JobProgress progress = core_.progress();
  if (std::exchange(logged_state_, progress.state) == progress.state) return;
  log::Info("state changed",
            {{"state", ToString(progress.state)},
             {"membership", progress.membership ? ToString(progress.membership->id) : ""},
             {"tick", progress.tick.value_or(0)}});
}

}  // namespace pliant
