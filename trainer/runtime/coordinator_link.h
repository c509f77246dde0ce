#pragma once

#include <string_view>

#include "trainer/membership/messages.h"

namespace pliant {

// Called on the link's event loop, never within a call to the link.
class CoordinatorHandler {
 public:
  virtual ~CoordinatorHandler() = default;
  // A new connection is open: nothing was sent on it yet.
  virtual void OnCoordinatorConnected() = 0;
  virtual void OnCoordinatorMessage(CoordinatorMessage message) = 0;
  // The connection is lost, with all messages in flight. Called once per connection.
  virtual void OnCoordinatorDisconnected(std::string_view reason) = 0;
};

// A learner's connection to its coordinator. As long as the link lives it dials, with back-off,
// also after a working connection has ended. All members are called on the event loop.
class CoordinatorLink {
 public:
  virtual ~CoordinatorLink() = default;
  virtual void Start(CoordinatorHandler* handler) = 0;  // borrowed
  // Queues a message. Dropped when there is no connection.
  virtual void Send(const LearnerMessage& message) = 0;
  // Closes the connection, if any, after sending queued messages, and dials again after a pause,
  // without calling OnCoordinatorDisconnected: the connection leads to a coordinator that is not to
  // be obeyed.
  virtual void Redial() = 0;
};

}  // namespace pliant
