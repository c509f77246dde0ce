#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "tests/simulation/process.h"
#include "trainer/membership/coordinator_core.h"
#include "trainer/runtime/coordinator_link.h"

namespace pliant::sim {

class CoordinatorHost;
class SimLink;

// One connection between a learner and a coordinator. Messages of one direction arrive in order.
struct Connection {
  ConnectionId id = 0;
  std::weak_ptr<CoordinatorHost> host;
  SimLink* link = nullptr;  // null once the learner's side is closed
  TimePoint last_to_host{};
  TimePoint last_to_link{};
};

// A coordinator's process around the core.
class CoordinatorHost : public std::enable_shared_from_this<CoordinatorHost> {
 public:
  struct Hooks {
    std::function<Duration()> delay;
    std::function<void(std::uint64_t counter)> persist;
    // Called before every effect; false kills the process at this point.
    std::function<bool(CoordinatorHost& host, const CoordinatorEffect& effect)> on_effect;
  };

  CoordinatorHost(EventLoop& loop, CoordinatorOptions options, Hooks hooks);
  ~CoordinatorHost();
  void Start();

  void PushPlan(const Plan& plan);
  bool alive() const { return alive_; }
  void Kill();
  void Drop(ConnectionId connection);  // as a network fault would
  std::uint64_t term() const { return options_.term; }
  const CoordinatorCore& core() const { return core_; }
  std::vector<std::shared_ptr<Connection>> connections() const;

  // ---- For SimLink ----
  void Accept(const std::shared_ptr<Connection>& connection);
  void OnText(ConnectionId connection, const std::string& text);
  void OnClosed(ConnectionId connection);

 private:
  void Poll();
  void Do(CoordinatorEffects effects);

  EventLoop& loop_;
  const CoordinatorOptions options_;
  const Hooks hooks_;
  CoordinatorCore core_;
  bool alive_ = true;
  std::map<ConnectionId, std::shared_ptr<Connection>> connections_;
};

// A learner's connection. It dials the coordinator that the job's Service selects at that moment.
class SimLink final : public CoordinatorLink {
 public:
  struct Hooks {
    std::function<Duration()> delay;
    std::function<std::shared_ptr<CoordinatorHost>()> service;  // null: no coordinator answers
    std::function<void(const LearnerMessage& message)> on_send;
  };
  SimLink(EventLoop& loop, std::shared_ptr<Gate> gate, Hooks hooks);
  ~SimLink() override;

  void Start(CoordinatorHandler* handler) override;
  void Send(const LearnerMessage& message) override;
  void Redial() override;

  // ---- For CoordinatorHost ----
  void OnText(const std::shared_ptr<Connection>& connection, const std::string& text);
  void OnClosed(const std::shared_ptr<Connection>& connection);

 private:
  void DialAfter(Duration delay);
  void CloseOwnSide();

  EventLoop& loop_;  // shared with the whole world
  GatedLoop gated_;
  const std::shared_ptr<Gate> gate_;
  const Hooks hooks_;
  CoordinatorHandler* handler_ = nullptr;
  std::shared_ptr<Connection> connection_;
  static ConnectionId last_id_;
};

}  // namespace pliant::sim
