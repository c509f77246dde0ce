#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/text_stream.h"
#include "base/websocket.h"

namespace pliant {

class RealEventLoop;

struct ServerRequest {
  std::string method;
  std::string path;   // without the query, as sent (not percent-decoded)
  std::string query;  // after the '?', as sent
  std::string body;
  std::string last_event_id;  // the header Last-Event-ID of a reader that comes back; or ""
};

struct ServerResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
};

// {"error": message}
ServerResponse ErrorResponse(int status, std::string_view message);

enum class Access {
  kGranted,
  kUnknown,    // no token, or an unknown one: 401
  kForbidden,  // a known token without the right: 403
  kUndecided,  // the token could not be checked: 503
};

// The service of one path. Functions are called on the event loop and must not block. Functions
// named ..._later answer by calling `done`, once, on any thread; after `answer_timeout` the server
// answers 503.
struct HttpRoute {
  std::string method;  // "GET", "PUT", ...
  std::string path;    // must match completely
  std::function<ServerResponse(const ServerRequest&)> handle;
  // Instead of `handle`.
  std::function<void(const ServerRequest&, std::function<void(ServerResponse)> done)> handle_later;
  // Called with the bearer token before the body is read. None: no token is needed.
  std::function<Access(std::string_view token)> admit;
  // Instead of `admit`.
  std::function<void(std::string_view token, std::function<void(Access)> done)> admit_later;
  // Instead of `handle`: the path is a WebSocket (method "GET").
  std::function<WebSocketCallbacks(std::shared_ptr<WebSocket>)> accept;
  // Instead of `handle`: the answer is a stream of server-sent events. The function may keep the
  // stream and send at once, or refuse it by an answer.
  std::function<std::optional<ServerResponse>(const ServerRequest&, std::shared_ptr<TextStream>)>
      stream;
  // Answers may have megabytes: they count against `max_large_answers`.
  bool large = false;
};

struct TlsFiles {
  std::filesystem::path certificate;  // PEM, leaf first
  std::filesystem::path key;
};

struct TlsPem {
  std::string certificate;  // leaf first
  std::string key;
  bool operator==(const TlsPem&) const = default;
};

struct HttpServerOptions {
  std::string name = "http";  // for logs
  // Empty: all addresses, also IPv6 ones if the machine has IPv6.
  std::string address;
  std::uint16_t port = 0;  // 0: any free one, see port()
  // Files are read again when they change. None: plain.
  std::optional<std::variant<TlsFiles, TlsPem>> tls;
  std::size_t max_body_bytes = 1024 * 1024;
  Duration request_timeout =
      std::chrono::seconds(15);  // for the TLS handshake, and to read a request
  Duration answer_timeout = std::chrono::seconds(10);  // of routes with ..._later
  Duration idle_timeout = std::chrono::seconds(60);    // between two requests of a connection
  // Connections above this are refused with 503 if that is cheap, else closed without an answer.
  std::size_t max_connections = 1024;
  std::size_t max_large_answers = 2;  // at the same time; further requests get 503
  // Bytes that may wait for the reader of a stream behind the text that is being sent to it.
  std::size_t max_stream_backlog = std::size_t{256} << 10;
  // Whether requests must name this machine, as localhost or by its loopback address: so that no
  // web site can read answers by giving its own name that address (DNS rebinding).
  bool only_local_names = false;
  WebSocketLimits websocket;
};

// A small HTTP/1.1 and WebSocket server on a RealEventLoop. It answers with 4xx by itself if a
// request matches no route: malformed, too large, too slow, not found, wrong method, not admitted.
class HttpServer {
 public:
  // Listens at once. Called on the thread of the loop, or before the loop runs; the same holds for
  // destruction, which closes all connections (callbacks are no longer called). `loop` outlives the
  // server.
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
