#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/websocket.h"

namespace pliant {

class RealEventLoop;

struct ServerRequest {
  std::string method;
  std::string path;   // without the query, as sent (not percent-decoded)
  std::string query;  // after the '?', as sent
  std::string body;
};

struct ServerResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
};

// {"error": message}
ServerResponse ErrorResponse(int status, std::string_view message);

enum class Access {
  kGranted,
  kUnknown,    // no token, or not one of ours: 401
  kForbidden,  // a token of ours that has no right to this: 403
};

// What one path serves. Functions are called on the event loop and must not block.
struct HttpRoute {
  std::string method;  // "GET", "PUT", ...
  std::string path;    // matched whole
  std::function<ServerResponse(const ServerRequest&)> handle;
  // Asked with the bearer token before the body is read. None: everybody may.
  std::function<Access(std::string_view token)> admit;
  // Instead of `handle`: the path is a WebSocket (method "GET").
  std::function<WebSocketCallbacks(std::shared_ptr<WebSocket>)> accept;
};

struct TlsFiles {
  std::filesystem::path certificate;  // PEM, leaf first
  std::filesystem::path key;
};

struct HttpServerOptions {
  std::string name = "http";    // for logs
  std::string address;          // empty: all addresses, of IPv6 too where the machine has it
  std::uint16_t port = 0;       // 0: any free one, see port()
  std::optional<TlsFiles> tls;  // read again when they change; none: plain
  std::size_t body_bytes_max = 1024 * 1024;
  Duration request_timeout =
      std::chrono::seconds(15);                      // for the TLS handshake, and to read a request
  Duration idle_timeout = std::chrono::seconds(60);  // between two requests of a connection
  std::size_t connections_max = 1024;                // more are closed unanswered
  WebSocketLimits websocket;
};

// A small HTTP/1.1 and WebSocket server on a RealEventLoop. It answers 4xx by itself to whatever is
// no request for a route: malformed, too large, too slow, not found, wrong method, not admitted.
class HttpServer {
 public:
  // Listens at once. On the thread of the loop, or before the loop runs; likewise destruction,
  // which closes all connections (callbacks are not called any more). `loop` outlives the server.
  static Result<std::unique_ptr<HttpServer>> Listen(RealEventLoop& loop, HttpServerOptions options,
                                                    std::vector<HttpRoute> routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

 private:
  class Core;
  explicit HttpServer(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace pliant
