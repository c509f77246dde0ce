#include "base/websocket_client.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http.hpp>
#include <type_traits>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/real_event_loop.h"
#include "base/tls_context.h"
#include "base/websocket_session.h"

namespace pliant {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;
using Done = std::function<WebSocketCallbacks(Result<std::shared_ptr<WebSocket>>)>;

Error Unavailable(std::string_view doing, const error_code& error) {
  return {ErrorCode::kUnavailable, std::string(doing) + ": " + error.message()};
}

Error TlsError(const error_code& error) {
  // Only a certificate that does not verify is worth another code: the rest may pass.
  const bool denied =
      error.category() == asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  return {denied ? ErrorCode::kDenied : ErrorCode::kUnavailable,
          "TLS handshake: " + error.message()};
}

// The server's own words, where it gave any.
Error Declined(const websocket::response_type& response, const error_code& error) {
  if (error != websocket::error::upgrade_declined) return Unavailable("WebSocket handshake", error);
  const unsigned status = response.result_int();
  return {status == 401 || status == 403 ? ErrorCode::kDenied : ErrorCode::kUnavailable,
          "the server answers " + std::to_string(status) + " " +
              std::string(http::obsolete_reason(response.result())) +
              (status == 401 ? ": it does not know this token" : "")};
}

template <typename Stream>
asio::awaitable<void> Connect(Stream stream, WebSocketEndpoint endpoint, WebSocketLimits limits,
                              Done done) {
  TcpStream& lowest = beast::get_lowest_layer(stream);
  lowest.expires_after(limits.handshake_timeout);
  tcp::resolver resolver(co_await asio::this_coro::executor);
  auto [resolve_error, addresses] =
      co_await resolver.async_resolve(endpoint.host, endpoint.port, kAwait);
  if (resolve_error) {
    done(std::unexpected(Unavailable("resolve " + endpoint.host, resolve_error)));
    co_return;
  }
  auto [connect_error, address] = co_await lowest.async_connect(addresses, kAwait);
  const std::string where = endpoint.host + ":" + endpoint.port;
  if (connect_error) {
    done(std::unexpected(Unavailable("connect to " + where, connect_error)));
    co_return;
  }
  error_code ignored;
  lowest.socket().set_option(tcp::no_delay(true), ignored);
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    lowest.expires_after(limits.handshake_timeout);
    SSL_set_tlsext_host_name(stream.native_handle(), endpoint.tls->server_name.c_str());
    auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
    if (error) {
      done(std::unexpected(TlsError(error)));
      co_return;
    }
  }
  const auto session = std::make_shared<WebSocketSession<Stream>>(std::move(stream), limits,
                                                                  beast::role_type::client);
  if (!endpoint.bearer_token.empty()) {
    session->stream().set_option(websocket::stream_base::decorator(
        [authorization = "Bearer " + endpoint.bearer_token](websocket::request_type& request) {
          request.set(http::field::authorization, authorization);
        }));
  }
  websocket::response_type response;
  const std::string host = endpoint.tls ? endpoint.tls->server_name : where;
  auto [error] = co_await session->stream().async_handshake(response, host, endpoint.path, kAwait);
  if (error) {
    done(std::unexpected(Declined(response, error)));
    co_return;
  }
  WebSocketCallbacks callbacks = done(std::shared_ptr<WebSocket>(session));
  done = nullptr;
  co_await session->Run(std::move(callbacks));
}

}  // namespace

void ConnectWebSocket(RealEventLoop& loop, WebSocketEndpoint endpoint, WebSocketLimits limits,
                      Done done) {
  TcpStream tcp_stream(loop.context());
  if (!endpoint.tls) {
    asio::co_spawn(loop.context(),
                   Connect(std::move(tcp_stream), std::move(endpoint), limits, std::move(done)),
                   &RethrowBug);
    return;
  }
  auto context = MakeClientTlsContext(endpoint.tls->ca_file, endpoint.tls->server_name);
  if (!context) {
    loop.Post([done = std::move(done), error = std::move(context).error()] {
      done(std::unexpected(error));
    });
    return;
  }
  asio::co_spawn(loop.context(),
                 Connect(TlsStream(std::move(tcp_stream), **context), std::move(endpoint), limits,
                         std::move(done)),
                 &RethrowBug);
}

}  // namespace pliant
