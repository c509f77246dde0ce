#pragma once

#include <functional>
#include <memory>

#include "base/backoff.h"
#include "base/websocket_client.h"
#include "trainer/runtime/coordinator_link.h"

namespace pliant {

class RealEventLoop;

struct WebSocketLinkOptions {
  WebSocketEndpoint endpoint;
  WebSocketLimits limits = {.max_message_bytes = kMaxMessageBytes,
                            .idle_timeout = std::chrono::seconds(10)};
  BackoffOptions backoff = {.first = std::chrono::milliseconds(100),
                            .most = std::chrono::seconds(3)};
  // A connection that lasted at least this long counts as good: the back-off starts over after it.
  Duration good_after = std::chrono::seconds(5);
};

// The link to the coordinator over a WebSocket.
class WebSocketLink final : public CoordinatorLink {
 public:
  // `loop` outlives it.
  WebSocketLink(RealEventLoop& loop, WebSocketLinkOptions options);
  ~WebSocketLink() override;

  void Start(CoordinatorHandler* handler) override;
  void Send(const LearnerMessage& message) override;
  void Redial() override;

  // For the end of the process: sends queued messages, then calls `done`, after `most` at the
  // latest, and never within the call. The handler is no longer called.
  void Finish(Duration most, std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pliant
