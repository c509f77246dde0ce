#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/runtime/coordinator_link.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// What a learner and its coordinators say to each other, from one connection to the next: who is to
// be obeyed, what a new connection begins with, and heartbeats. Lives as long as the learner.
class CoordinatorSession final : public CoordinatorHandler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // What a new connection begins with: a Hello, and what may have been lost with the connection
    // before, or with its reader.
    virtual std::vector<LearnerMessage> Greeting() = 0;
    virtual Progress MakeProgress() = 0;
    // Of a coordinator that is to be obeyed; no Welcome.
    virtual void Obey(const CoordinatorMessage& message) = 0;
  };

  // `link`, none for a learner that trains alone, and all others are borrowed. Coordinators of
  // terms below `min_term` are not obeyed.
  CoordinatorSession(CoordinatorLink* link, Tasks& tasks, std::uint64_t min_term, Owner& owner)
      : link_(link), tasks_(tasks), owner_(owner), term_(min_term) {}

  void Start();
  // Dropped when there is no connection.
  void Send(const LearnerMessage& message);
  void SendProgress() { Send(owner_.MakeProgress()); }
  bool linked() const { return linked_; }
  // Nothing is heard any more, and no heartbeat sent.
  void End();

 private:
  void OnCoordinatorConnected() override;
  void OnCoordinatorMessage(CoordinatorMessage message) override;
  void OnCoordinatorDisconnected(std::string_view reason) override;
  void OnWelcome(const Welcome& welcome);
  void Disconnect();
  void SendHeartbeat();  // now, and from now on

  CoordinatorLink* const link_;
  Tasks& tasks_;
  Owner& owner_;
  bool linked_ = false;
  bool welcomed_ = false;
  bool ended_ = false;
  std::uint64_t term_;  // the highest seen
  Duration heartbeat_every_ = std::chrono::seconds(1);
  std::uint64_t heartbeat_round_ = 0;  // a timer of an earlier one does nothing
};

}  // namespace pliant
