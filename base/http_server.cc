#include "base/http_server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/byte_stream.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "base/text_stream_session.h"
#include "base/tls_context.h"
#include "base/websocket_session.h"

namespace pliant {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;
using Parser = http::request_parser<http::string_body>;

constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
constexpr auto kGoodbyeTimeout = std::chrono::seconds(2);
// Connections that are being refused with 503 at the same time.
constexpr int kMaxRefusals = 16;
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

std::string_view View(boost::core::string_view text) { return {text.data(), text.size()}; }

std::string_view BearerToken(const Parser& parser) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = View(parser.get()[http::field::authorization]);
  if (value.size() < kScheme.size() || !beast::iequals(value.substr(0, kScheme.size()), kScheme)) {
    return {};
  }
  return value.substr(kScheme.size());
}

bool IsParseError(const error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

ServerResponse AnswerToParseError(const error_code& error) {
  if (error == http::error::body_limit) return ErrorResponse(413, "the body is too large");
  if (error == http::error::header_limit) return ErrorResponse(431, "the header is too large");
  return ErrorResponse(400, "not a valid HTTP request: " + error.message());
}

ServerResponse AnswerToRefused(Access access) {
  if (access == Access::kUnknown) return ErrorResponse(401, "a valid bearer token is needed");
  if (access == Access::kForbidden) return ErrorResponse(403, "this token may not do that");
  return ErrorResponse(503, "the token could not be checked; try again later");
}

http::response<http::string_body> ToBeast(ServerResponse answer, unsigned version, bool keep_alive,
                                          std::string_view allowed_methods) {
  http::response<http::string_body> response;
  response.version(version);
  response.result(static_cast<unsigned>(answer.status));
  response.set(http::field::content_type, answer.content_type);
  response.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : answer.headers) response.set(name, value);
  if (answer.status == 401) response.set(http::field::www_authenticate, "Bearer");
  if (answer.status == 405) response.set(http::field::allow, allowed_methods);
  if (answer.status == 426) response.set(http::field::upgrade, "websocket");
  response.keep_alive(keep_alive);
  response.body() = std::move(answer.body);
  response.prepare_payload();
  return response;
}

}  // namespace

ServerResponse ErrorResponse(int status, std::string_view message) {
  const nlohmann::json body = {{"error", message}};
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

class HttpServer::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(RealEventLoop& loop, HttpServerOptions options, std::vector<HttpRoute> routes)
      : options_(std::move(options)),
        routes_(std::move(routes)),
        loop_(loop),
        context_(loop.context()),
        acceptor_(context_) {
    if (options_.tls) tls_ = std::make_unique<ServerTlsContext>(*options_.tls);
  }

  Status Open() {
    if (tls_) RETURN_IF_ERROR(tls_->Current());
    if (!options_.address.empty()) {
      error_code error;
      const auto address = asio::ip::make_address(options_.address, error);
      if (error) return Invalid("'" + options_.address + "' is not an IP address");
      return OpenAt(tcp::endpoint(address, options_.port));
    }
    if (OpenAt(tcp::endpoint(tcp::v6(), options_.port))) return {};
    return OpenAt(tcp::endpoint(tcp::v4(), options_.port));
  }

  void Start() { asio::co_spawn(context_, Accept(shared_from_this()), &RethrowBug); }

  void Stop() {
    stopped_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    // Closing ends the coroutines, which remove themselves from the list: iterate over another one.
    const auto closers = std::exchange(connections_, {});
    for (const auto& [id, close] : closers) close();
  }

  std::uint16_t port() const {
    error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

 private:
  // A connection's entry in the list of connections that Stop closes.
  class Registration {
   public:
    Registration(Core& core, std::function<void()> close) : core_(core), id_(++core.last_id_) {
      CloseBy(std::move(close));
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { core_.connections_.erase(id_); }

    void CloseBy(std::function<void()> close) { core_.connections_[id_] = std::move(close); }

   private:
    Core& core_;
    const std::uint64_t id_;
  };

  Status OpenAt(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.address().is_v6()) {
      acceptor_.set_option(asio::ip::v6_only(false), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) return {};
    const std::string where =
        endpoint.address().to_string() + " port " + std::to_string(endpoint.port());
    return Fail(error == asio::error::access_denied ? ErrorCode::kDenied : ErrorCode::kUnavailable,
                "listen on " + where + ": " + error.message());
  }

  static asio::awaitable<void> Accept(std::shared_ptr<Core> self) {
    bool fails = false;
    while (!self->stopped_) {
      auto [error, socket] = co_await self->acceptor_.async_accept(kAwait);
      if (self->stopped_) break;
      const bool failed_before = std::exchange(fails, static_cast<bool>(error));
      if (error) {
        // Most likely the process is out of descriptors: without a pause this loop would spin.
        if (!failed_before)
          log::Warning("cannot accept a connection",
                       {{"server", self->options_.name}, {"error", error.message()}});
        asio::steady_timer pause(self->context_, kAcceptRetry);
        auto [ignored] = co_await pause.async_wait(kAwait);
        static_cast<void>(ignored);
        continue;
      }
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      if (self->conversations_ >= self->options_.max_connections) {
        // Under TLS the refusal would cost a handshake, so the connection is only closed.
        if (!self->tls_ && self->refusals_ < kMaxRefusals) {
          asio::co_spawn(self->context_, Refuse(self, ByteStream(std::move(socket))), &RethrowBug);
        }
        continue;
      }
      // Reading the files for each connection makes a renewed certificate take effect by itself.
      if (self->tls_) {
        const auto context = self->tls_->Current();
        if (!context) continue;
        asio::co_spawn(self->context_, Converse(self, ByteStream(std::move(socket), **context)),
                       &RethrowBug);
      } else {
        asio::co_spawn(self->context_, Converse(self, ByteStream(std::move(socket))), &RethrowBug);
      }
    }
  }

  // Increments a count for its lifetime.
  template <typename Number>
  class Counted {
   public:
    explicit Counted(Number& count) : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }

   private:
    Number& count_;
  };

  // Answers a connection above `max_connections` with 503.
  static asio::awaitable<void> Refuse(std::shared_ptr<Core> self, ByteStream stream) {
    const Counted counted(self->refusals_);
    Registration registration(*self, [&stream] { stream.Close(); });
    stream.ExpiresAfter(kGoodbyeTimeout);
    const auto response = ToBeast(ErrorResponse(503, "too many connections"), /*version=*/11,
                                  /*keep_alive=*/false, /*allowed_methods=*/{});
    auto [error, written] = co_await http::async_write(stream, response, kAwait);
    if (!error) co_await stream.ShutDown();
  }

  // One connection, from its first byte to its end.
  static asio::awaitable<void> Converse(std::shared_ptr<Core> self, ByteStream stream) {
    const Counted counted(self->conversations_);
    Registration registration(*self, [&stream] { stream.Close(); });
    stream.ExpiresAfter(self->options_.request_timeout);
    const error_code tls_error = co_await stream.AcceptTls();
    if (tls_error) co_return;
    beast::flat_buffer buffer;
    while (!self->stopped_) {
      Parser parser;
      parser.header_limit(kMaxHeaderBytes);
      parser.body_limit(self->options_.max_body_bytes);
      auto [error, bytes] = co_await http::async_read_header(stream, buffer, parser, kAwait);
      if (self->stopped_ || (error && !IsParseError(error))) co_return;

      const HttpRoute* route = nullptr;
      ServerResponse answer = error ? AnswerToParseError(error) : self->FindRoute(parser, &route);
      if (route != nullptr && self->options_.only_local_names &&
          !NamesLoopback(View(parser.get()[http::field::host]))) {
        answer = ErrorResponse(403, "the header Host must be localhost, 127.0.0.1 or [::1]");
        route = nullptr;
      }
      if (route != nullptr) {
        const Access access = co_await Admit(self, *route, BearerToken(parser));
        if (self->stopped_) co_return;
        if (access != Access::kGranted) {
          answer = AnswerToRefused(access);
          route = nullptr;
        } else if (route->accept && !beast::websocket::is_upgrade(parser.get())) {
          answer = ErrorResponse(426, "this path is a WebSocket");
          route = nullptr;
        }
      }
      if (route != nullptr && route->accept) {
        co_await Upgrade(self, std::move(stream), parser.release(), *route, registration);
        co_return;
      }
      if (route != nullptr && route->stream) {
        co_await Stream(self, std::move(stream), ToRequest(parser.release()), *route, registration);
        co_return;
      }
      std::optional<Counted<std::size_t>> large;
      bool keep_alive = !error && parser.keep_alive() && (route != nullptr || parser.is_done());
      if (route != nullptr) {
        const error_code read_error = co_await ReadBody(stream, buffer, parser);
        if (self->stopped_ || (read_error && !IsParseError(read_error))) co_return;
        keep_alive = keep_alive && !read_error;
        if (read_error) {
          answer = AnswerToParseError(read_error);
        } else if (route->large && self->large_answers_ >= self->options_.max_large_answers) {
          answer = ErrorResponse(503, "too many large answers are in progress; try again later");
        } else {
          if (route->large) large.emplace(self->large_answers_);
          answer = co_await Handle(self, *route, ToRequest(parser.release()));
          if (self->stopped_) co_return;
        }
      }
      const auto response = ToBeast(std::move(answer), error ? 11 : parser.get().version(),
                                    keep_alive, self->MethodsOf(parser));
      stream.ExpiresAfter(self->options_.request_timeout);
      auto [write_error, written] = co_await http::async_write(stream, response, kAwait);
      if (write_error) co_return;
      if (!keep_alive) break;
      stream.ExpiresAfter(self->options_.idle_timeout);
    }
    stream.ExpiresAfter(kGoodbyeTimeout);
    co_await stream.ShutDown();
  }

  // Waits for the value that `begin` passes to its argument; nullopt if that takes too long.
  template <typename Value, typename Begin>
  static asio::awaitable<std::optional<Value>> Later(std::shared_ptr<Core> self,
                                                     const Begin& begin) {
    struct Awaited {
      asio::steady_timer timer;
      std::optional<Value> value;
    };
    const auto awaited = std::make_shared<Awaited>(asio::steady_timer(self->context_));
    awaited->timer.expires_after(self->options_.answer_timeout);
    const std::function<void(Value)> done = [&loop = self->loop_,
                                             weak = std::weak_ptr(awaited)](Value value) {
      loop.Post([weak, value = std::move(value)]() mutable {
        const auto still = weak.lock();
        if (!still) return;
        still->value = std::move(value);
        still->timer.cancel();
      });
    };
    begin(done);
    auto [ignored] = co_await awaited->timer.async_wait(kAwait);
    static_cast<void>(ignored);
    co_return std::move(awaited->value);
  }

  static asio::awaitable<Access> Admit(std::shared_ptr<Core> self, const HttpRoute& route,
                                       std::string_view token) {
    if (route.admit) co_return route.admit(token);
    if (!route.admit_later) co_return Access::kGranted;
    const auto begin = [&](std::function<void(Access)> done) {
      route.admit_later(token, std::move(done));
    };
    const std::optional<Access> access = co_await Later<Access>(self, begin);
    co_return access.value_or(Access::kUndecided);
  }

  static asio::awaitable<ServerResponse> Handle(std::shared_ptr<Core> self, const HttpRoute& route,
                                                ServerRequest request) {
    if (!route.handle_later) co_return route.handle(request);
    const auto begin = [&](std::function<void(ServerResponse)> done) {
      route.handle_later(request, std::move(done));
    };
    std::optional<ServerResponse> answer = co_await Later<ServerResponse>(self, begin);
    co_return answer ? *std::move(answer) : ErrorResponse(503, "the answer took too long");
  }

  static asio::awaitable<error_code> ReadBody(ByteStream& stream, beast::flat_buffer& buffer,
                                              Parser& parser) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const http::response<http::empty_body> go_on(http::status::continue_, parser.get().version());
      auto [error, bytes] = co_await http::async_write(stream, go_on, kAwait);
      if (error) co_return error;
    }
    auto [error, bytes] = co_await http::async_read(stream, buffer, parser, kAwait);
    co_return error;
  }

  static asio::awaitable<void> Upgrade(std::shared_ptr<Core> self, ByteStream stream,
                                       WebSocketSession::Request request, const HttpRoute& route,
                                       Registration& registration) {
    const auto session = std::make_shared<WebSocketSession>(
        std::move(stream), self->options_.websocket, beast::role_type::server);
    registration.CloseBy([session] { session->Drop("the server stops"); });
    const Status accepted = co_await session->Accept(std::move(request));
    if (!accepted || self->stopped_) co_return;
    const WebSocketCallbacks callbacks = route.accept(session);
    // The owners of a stopped server may be destroyed.
    WebSocketCallbacks guarded{.on_message =
                                   [&self, &callbacks](std::string text) {
                                     if (!self->stopped_ && callbacks.on_message)
                                       callbacks.on_message(std::move(text));
                                   },
                               .on_closed =
                                   [&self, &callbacks](std::string_view reason) {
                                     if (!self->stopped_ && callbacks.on_closed)
                                       callbacks.on_closed(reason);
                                   }};
    co_await session->Run(std::move(guarded));
  }

  // A stream needs no body, and ends with its connection. A refusal, too, is a text and the end.
  static asio::awaitable<void> Stream(std::shared_ptr<Core> self, ByteStream stream,
                                      ServerRequest request, const HttpRoute& route,
                                      Registration& registration) {
    const auto session =
        std::make_shared<TextStreamSession>(std::move(stream), self->options_.max_stream_backlog);
    registration.CloseBy([session] { session->Close(); });
    std::optional<ServerResponse> refusal = route.stream(request, session);
    ServerResponse answer =
        refusal ? *std::move(refusal) : ServerResponse{.content_type = "text/event-stream"};
    const std::string body = std::exchange(answer.body, {});
    auto response = ToBeast(std::move(answer), /*version=*/11, /*keep_alive=*/false,
                            /*allowed_methods=*/{});
    response.erase(http::field::content_length);
    std::ostringstream header;
    header << response.base();
    co_await session->Run(std::move(header).str() + body, /*once=*/refusal.has_value());
  }

  // For the Allow header.
  std::string MethodsOf(const Parser& parser) const {
    std::string methods;
    const std::string_view target = View(parser.get().target());
    for (const HttpRoute& route : routes_) {
      if (route.path != target.substr(0, target.find('?'))) continue;
      methods += (methods.empty() ? "" : ", ") + route.method;
    }
    return methods;
  }

  // Finds the route of a request; if there is none, returns the error response.
  ServerResponse FindRoute(const Parser& parser, const HttpRoute** route) const {
    const std::string_view target = View(parser.get().target());
    const std::string_view path = target.substr(0, target.find('?'));
    const std::string_view method = View(parser.get().method_string());
    bool path_known = false;
    for (const HttpRoute& candidate : routes_) {
      if (candidate.path != path) continue;
      path_known = true;
      if (candidate.method != method) continue;
      *route = &candidate;
      return {};
    }
    if (path_known) return ErrorResponse(405, "this path does not support that method");
    return ErrorResponse(404, "there is no such path");
  }

  static ServerRequest ToRequest(http::request<http::string_body> request) {
    const std::string_view target = View(request.target());
    const std::size_t question = target.find('?');
    return {.method = std::string(View(request.method_string())),
            .path = std::string(target.substr(0, question)),
            .query = question == target.npos ? "" : std::string(target.substr(question + 1)),
            .body = std::move(request.body()),
            .last_event_id = std::string(View(request["Last-Event-ID"]))};
  }

  const HttpServerOptions options_;
  const std::vector<HttpRoute> routes_;
  RealEventLoop& loop_;
  asio::io_context& context_;
  std::unique_ptr<ServerTlsContext> tls_;  // none: plain
  tcp::acceptor acceptor_;
  bool stopped_ = false;
  std::size_t conversations_ = 0;
  int refusals_ = 0;
  std::size_t large_answers_ = 0;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::function<void()>> connections_;
};

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(RealEventLoop& loop,
                                                       HttpServerOptions options,
                                                       std::vector<HttpRoute> routes) {
  auto core = std::make_shared<Core>(loop, std::move(options), std::move(routes));
  RETURN_IF_ERROR(core->Open());
  core->Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

HttpServer::HttpServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}
HttpServer::~HttpServer() { core_->Stop(); }
std::uint16_t HttpServer::port() const { return core_->port(); }

}  // namespace pliant
