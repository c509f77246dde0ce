#include "tests/simulation/coordinators.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pliant::sim {
namespace {

// Arrival time of a message sent now: never before the messages that were sent earlier.
Duration InOrder(TimePoint& last, TimePoint now, Duration delay) {
  last = std::max(last, now + delay);
  return last - now;
}

}  // namespace

// ---- The coordinator's side ----

CoordinatorHost::CoordinatorHost(EventLoop& loop, CoordinatorOptions options, Hooks hooks)
    : loop_(loop), options_(options), hooks_(std::move(hooks)), core_(options, loop.Now()) {}

CoordinatorHost::~CoordinatorHost() { Kill(); }

void CoordinatorHost::Start() { Poll(); }

void CoordinatorHost::Poll() {
  if (!alive_) return;
  Do(core_.OnTimer(loop_.Now()));
  loop_.PostAfter(CoordinatorCore::kPollInterval, [self = weak_from_this()] {
    if (const auto host = self.lock()) host->Poll();
  });
}

void CoordinatorHost::PushPlan(const Plan& plan) {
  if (!alive_) return;
  if (Result<CoordinatorEffects> effects = core_.SetPlan(plan, loop_.Now())) {
    Do(*std::move(effects));
  }
}

std::vector<std::shared_ptr<Connection>> CoordinatorHost::connections() const {
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [id, connection] : connections_) all.push_back(connection);
  return all;
}

void CoordinatorHost::Accept(const std::shared_ptr<Connection>& connection) {
  connections_[connection->id] = connection;
}

void CoordinatorHost::OnText(ConnectionId connection, const std::string& text) {
  if (!alive_ || !connections_.contains(connection)) return;
  const Result<LearnerMessage> message = DecodeLearnerMessage(text);
  CHECK(message.has_value(), message ? "" : message.error().message);
  Do(core_.OnMessage(connection, *message, loop_.Now()));
}

void CoordinatorHost::OnClosed(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (!alive_ || found == connections_.end()) return;
  connections_.erase(found);
  Do(core_.OnDisconnected(connection, loop_.Now()));
}

void CoordinatorHost::Do(CoordinatorEffects effects) {
  for (const CoordinatorEffect& effect : effects) {
    if (!hooks_.on_effect(*this, effect)) return Kill();
    if (const auto* persist = std::get_if<PersistCounter>(&effect)) {
      hooks_.persist(persist->counter);
    } else if (const auto* send = std::get_if<SendMessage>(&effect)) {
      const auto found = connections_.find(send->connection);
      CHECK(found != connections_.end(), "the core sends on open connections only");
      const std::shared_ptr<Connection>& connection = found->second;
      loop_.PostAfter(InOrder(connection->last_to_link, loop_.Now(), hooks_.delay()),
                      [connection, text = Encode(send->message)] {
                        if (connection->link != nullptr) connection->link->OnText(connection, text);
                      });
    } else {
      const ConnectionId id = std::get<CloseConnection>(effect).connection;
      const auto found = connections_.find(id);
      if (found == connections_.end()) continue;
      const std::shared_ptr<Connection> connection = found->second;
      connections_.erase(found);
      loop_.PostAfter(InOrder(connection->last_to_link, loop_.Now(), hooks_.delay()), [connection] {
        if (connection->link != nullptr) connection->link->OnClosed(connection);
      });
    }
  }
}

void CoordinatorHost::Drop(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  loop_.PostAfter(hooks_.delay(), [connection] {
    if (const auto host = connection->host.lock()) host->OnClosed(connection->id);
  });
  loop_.PostAfter(hooks_.delay(), [connection] {
    if (connection->link != nullptr) connection->link->OnClosed(connection);
  });
}

void CoordinatorHost::Kill() {
  if (!std::exchange(alive_, false)) return;
  for (const auto& [id, connection] : connections_) {
    loop_.PostAfter(hooks_.delay(), [connection] {
      if (connection->link != nullptr) connection->link->OnClosed(connection);
    });
  }
  connections_.clear();
}

// ---- The learner's side ----

ConnectionId SimLink::last_id_ = 0;

SimLink::SimLink(EventLoop& loop, std::shared_ptr<Gate> gate, Hooks hooks)
    : loop_(loop), gated_(loop, gate), gate_(std::move(gate)), hooks_(std::move(hooks)) {}

SimLink::~SimLink() { CloseOwnSide(); }

void SimLink::Start(CoordinatorHandler* handler) {
  handler_ = handler;
  DialAfter(Duration::zero());
}

void SimLink::DialAfter(Duration delay) {
  gated_.PostAfter(delay + hooks_.delay(), [this] {
    if (connection_ != nullptr) return;
    const std::shared_ptr<CoordinatorHost> host = hooks_.service();
    if (host == nullptr || !host->alive()) return DialAfter(std::chrono::milliseconds(200));
    connection_ = std::make_shared<Connection>();
    connection_->id = ++last_id_;
    connection_->host = host;
    connection_->link = this;
    host->Accept(connection_);
    handler_->OnCoordinatorConnected();
  });
}

void SimLink::Send(const LearnerMessage& message) {
  hooks_.on_send(message);
  if (connection_ == nullptr) return;
  loop_.PostAfter(InOrder(connection_->last_to_host, loop_.Now(), hooks_.delay()),
                  [connection = connection_, text = Encode(message)] {
                    if (const auto host = connection->host.lock()) {
                      host->OnText(connection->id, text);
                    }
                  });
}

void SimLink::CloseOwnSide() {
  if (connection_ == nullptr) return;
  connection_->link = nullptr;
  loop_.PostAfter(InOrder(connection_->last_to_host, loop_.Now(), hooks_.delay()),
                  [connection = connection_] {
                    if (const auto host = connection->host.lock()) host->OnClosed(connection->id);
                  });
  connection_.reset();
}

void SimLink::Redial() {
  CloseOwnSide();
  DialAfter(std::chrono::milliseconds(300));
}

void SimLink::OnText(const std::shared_ptr<Connection>& connection, const std::string& text) {
  const Result<CoordinatorMessage> message = DecodeCoordinatorMessage(text);
  CHECK(message.has_value(), message ? "" : message.error().message);
  gate_->Run([this, connection, message = *message] {
    if (connection_ == connection) handler_->OnCoordinatorMessage(message);
  });
}

void SimLink::OnClosed(const std::shared_ptr<Connection>& connection) {
  connection->link = nullptr;
  gate_->Run([this, connection] {
    if (connection_ != connection) return;
    connection_.reset();
    handler_->OnCoordinatorDisconnected("closed");
    DialAfter(std::chrono::milliseconds(100));
  });
}

}  // namespace pliant::sim
