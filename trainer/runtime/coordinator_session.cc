#include "trainer/runtime/coordinator_session.h"

#include <variant>

#include "base/log.h"

namespace pliant {

void CoordinatorSession::Start() { link_->Start(this); }

void CoordinatorSession::Send(const LearnerMessage& message) {
  if (linked_) link_->Send(message);
}

void CoordinatorSession::End() {
  ended_ = true;
  Disconnect();
}

void CoordinatorSession::Disconnect() {
  linked_ = false;
  ++heartbeat_round_;
}

void CoordinatorSession::OnCoordinatorConnected() {
  if (ended_) return;
  linked_ = true;
  welcomed_ = false;
  for (const LearnerMessage& message : owner_.Greeting()) Send(message);
  ++heartbeat_round_;
  SendHeartbeat();
}

void CoordinatorSession::OnCoordinatorDisconnected(std::string_view reason) {
  if (ended_) return;
  Disconnect();
  log::Warning("coordinator connection lost", {{"reason", reason}});
}

void CoordinatorSession::OnCoordinatorMessage(CoordinatorMessage message) {
  if (!linked_) return;
  if (const auto* const welcome = std::get_if<Welcome>(&message)) return OnWelcome(*welcome);
  // The term is checked once, in Welcome: memberships that the coordinator passes on may come from
  // an earlier one.
  if (welcomed_ || std::holds_alternative<Refused>(message))
    tasks_.Handle([&] { owner_.Obey(message); });
}

void CoordinatorSession::OnWelcome(const Welcome& welcome) {
  if (welcome.term < term_) {
    // An earlier coordinator than the known one: it has not noticed yet that it was replaced.
    log::Warning("outdated coordinator, dialling again",
                 {{"term", welcome.term}, {"known", term_}});
    Disconnect();
    link_->Redial();
    return;
  }
  welcomed_ = true;
  term_ = welcome.term;
  if (welcome.heartbeat_seconds > 0) {
    heartbeat_every_ = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(welcome.heartbeat_seconds));
  }
}

void CoordinatorSession::SendHeartbeat() {
  SendProgress();
  tasks_.After(heartbeat_every_, [this, round = heartbeat_round_] {
    if (round == heartbeat_round_) SendHeartbeat();
  });
}

}  // namespace pliant
