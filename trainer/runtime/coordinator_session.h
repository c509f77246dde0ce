#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/runtime/coordinator_link.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// The exchange between a learner and its coordinators, across connections: which coordinator is
// obeyed, what a new connection begins with, and heartbeats. Lives as long as the learner.
class CoordinatorSession final : public CoordinatorHandler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The first messages of a new connection: a Hello, and what may have been lost with the
    // previous connection, or with the coordinator that read it.
    virtual std::vector<LearnerMessage> Greeting() = 0;
    virtual Progress MakeProgress() = 0;
    // Carries out a message, not a Welcome, of a coordinator that is obeyed. Called as a handler of
    // the tasks.
    virtual void Obey(const CoordinatorMessage& message) = 0;
  };

  // All are borrowed; `link`: none for a learner that trains alone. Coordinators of terms below
  // `min_term` are not obeyed.
  CoordinatorSession(CoordinatorLink* link, Tasks& tasks, std::uint64_t min_term, Owner& owner)
      : link_(link), tasks_(tasks), owner_(owner), term_(min_term) {}

  void Start();
  // Dropped when there is no connection.
  void Send(const LearnerMessage& message);
  void SendProgress() { Send(owner_.MakeProgress()); }
  bool linked() const { return linked_; }
  // From here on messages are ignored, and no heartbeat is sent.
  void End();

 private:
  void OnCoordinatorConnected() override;
  void OnCoordinatorMessage(CoordinatorMessage message) override;
  void OnCoordinatorDisconnected(std::string_view reason) override;
  void OnWelcome(const Welcome& welcome);
  void Disconnect();
  void SendHeartbeat();  // now, then periodically

  CoordinatorLink* const link_;
  Tasks& tasks_;
  Owner& owner_;
  bool linked_ = false;
  bool welcomed_ = false;
  bool ended_ = false;
  std::uint64_t term_;  // the highest seen
  Duration heartbeat_every_ = std::chrono::seconds(1);
  std::uint64_t heartbeat_round_ = 0;  // timers of earlier rounds do nothing
};

}  // namespace pliant
