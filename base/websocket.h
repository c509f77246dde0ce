#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"

namespace pliant {

struct WebSocketLimits {
  std::size_t max_message_bytes = 256 * 1024;
  // The limit for bytes that wait to be sent. A peer that does not read is dropped above it; it
  // reconnects and receives the current state again.
  std::size_t max_queued_bytes = 4 * 1024 * 1024;
  // The peer counts as lost after this silence. A ping is sent after half of it.
  Duration idle_timeout = std::chrono::seconds(20);
  Duration handshake_timeout = std::chrono::seconds(10);
};

// One open connection that carries texts, in order. Used only on its event loop.
class WebSocket {
 public:
  virtual ~WebSocket() = default;

  // Queues a text. Drops it if the connection is closing or closed.
  virtual void Send(std::string text) = 0;
  // Sends the queue, then closes with this reason (at most 123 bytes of it).
  virtual void Close(std::string_view reason) = 0;
  // Ends the connection at once; the queue is lost.
  virtual void Drop(std::string_view reason) = 0;
  // "ip:port" of the other side, for logs.
  virtual const std::string& peer() const = 0;
};

// Called on the event loop, never from within a call to the WebSocket.
struct WebSocketCallbacks {
  std::function<void(std::string text)> on_message;
  // The last call, made once, whichever side ended the connection.
  std::function<void(std::string_view reason)> on_closed;
};

}  // namespace pliant
