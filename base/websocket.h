#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"

namespace pliant {

struct WebSocketLimits {
  std::size_t message_bytes_max = 256 * 1024;
  // What may wait to be sent. A peer that does not read is dropped beyond it: it will connect again
  // and be told anew.
  std::size_t queued_bytes_max = 4 * 1024 * 1024;
  // Silence after which the peer counts as gone. A ping goes out at half of it.
  Duration idle_timeout = std::chrono::seconds(20);
  Duration handshake_timeout = std::chrono::seconds(10);
};

// One open connection that carries texts, in order. Used on its event loop only.
class WebSocket {
 public:
  virtual ~WebSocket() = default;

  // Queues a text. Dropped when the connection is closing or closed.
  virtual void Send(std::string text) = 0;
  // Sends what is queued, then says goodbye with this reason (at most 123 bytes of it).
  virtual void Close(std::string_view reason) = 0;
  // Ends the connection at once; what is queued is lost.
  virtual void Drop(std::string_view reason) = 0;
  // "ip:port" of the other side, for logs.
  virtual const std::string& peer() const = 0;
};

// Called on the event loop, never within a call to the WebSocket.
struct WebSocketCallbacks {
  std::function<void(std::string text)> on_message;
  // Last, and once, whoever ended the connection.
  std::function<void(std::string_view reason)> on_closed;
};

}  // namespace pliant
