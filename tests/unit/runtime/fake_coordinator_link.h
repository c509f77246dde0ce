#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/runtime/coordinator_link.h"

namespace pliant {

// A connection that a test makes and breaks. Like the real one, it drops messages while it is
// disconnected, and does not report a connection that Redial ended.
class FakeCoordinatorLink final : public CoordinatorLink {
 public:
  std::vector<LearnerMessage> sent;
  int redials = 0;

  // The names of the sent messages.
  std::vector<std::string> sent_names() const {
    std::vector<std::string> names;
    for (const LearnerMessage& message : sent) names.emplace_back(NameOf(message));
    return names;
  }
  void Connect() {
    connected_ = true;
    handler_->OnCoordinatorConnected();
  }
  void Break() {
    connected_ = false;
    handler_->OnCoordinatorDisconnected("reset");
  }
  // Receives a message on the present connection.
  void Say(CoordinatorMessage message) { handler_->OnCoordinatorMessage(std::move(message)); }

  void Start(CoordinatorHandler* handler) override { handler_ = handler; }
  void Send(const LearnerMessage& message) override {
    if (connected_) sent.push_back(message);
  }
  void Redial() override {
    connected_ = false;
    ++redials;
  }

 private:
  CoordinatorHandler* handler_ = nullptr;
  bool connected_ = false;
};

}  // namespace pliant
