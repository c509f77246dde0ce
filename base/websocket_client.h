#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/websocket.h"

namespace pliant {

class RealEventLoop;

struct WebSocketEndpoint {
  std::string host;  // name or address
  std::string port;
  std::string path;
  std::string bearer_token;  // empty: none
  // With TLS the server's certificate must chain to `ca_file` and name `server_name`, whatever the
  // host is. None: plain.
  struct Tls {
    std::filesystem::path ca_file;
    std::string server_name;
  };
  std::optional<Tls> tls;
};

// Connects, and calls `done` once, never within this call. On success `done` receives the open
// connection and returns its callbacks. On failure it receives the error, and its return value is
// ignored: kDenied for a rejected token or certificate, kUnavailable for errors that may pass.
// `loop` outlives the connection.
void ConnectWebSocket(RealEventLoop& loop, WebSocketEndpoint endpoint, WebSocketLimits limits,
                      std::function<WebSocketCallbacks(Result<std::shared_ptr<WebSocket>>)> done);

}  // namespace pliant
