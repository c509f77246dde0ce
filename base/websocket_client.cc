#include "base/websocket_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/byte_stream.h"
#include "base/real_event_loop.h"
#include "base/tls_context.h"
#include "base/websocket_session.h"

namespace pliant {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;
using Done = std::function<WebSocketCallbacks(Result<std::shared_ptr<WebSocket>>)>;

Error Unavailable(std::string_view doing, const error_code& error) {
  return {ErrorCode::kUnavailable, std::string(doing) + ": " + error.message()};
}

Error TlsError(const error_code& error) {
  // Only a certificate that does not verify gets another code: other errors may pass.
  const bool denied =
      error.category() == asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  return {denied ? ErrorCode::kDenied : ErrorCode::kUnavailable,
          "TLS handshake: " + error.message()};
}

asio::awaitable<void> Connect(RealEventLoop& loop, WebSocketEndpoint endpoint,
                              WebSocketLimits limits, std::shared_ptr<asio::ssl::context> context,
                              Done done) {
  tcp::resolver resolver(loop.context());
  auto [resolve_error, addresses] =
      co_await resolver.async_resolve(endpoint.host, endpoint.port, kAwait);
  if (resolve_error) {
    done(std::unexpected(Unavailable("resolve " + endpoint.host, resolve_error)));
    co_return;
  }
  const std::string where = endpoint.host + ":" + endpoint.port;
  beast::tcp_stream tcp_stream(loop.context());
  tcp_stream.expires_after(limits.handshake_timeout);
  auto [connect_error, address] = co_await tcp_stream.async_connect(addresses, kAwait);
  if (connect_error) {
    done(std::unexpected(Unavailable("connect to " + where, connect_error)));
    co_return;
  }
  tcp::socket socket = tcp_stream.release_socket();
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ByteStream stream =
      context ? ByteStream(std::move(socket), *context) : ByteStream(std::move(socket));
  stream.ExpiresAfter(limits.handshake_timeout);
  const std::string host = endpoint.tls ? endpoint.tls->server_name : where;
  const error_code tls_error = co_await stream.ConnectTls(host);
  if (tls_error) {
    done(std::unexpected(TlsError(tls_error)));
    co_return;
  }
  const auto session =
      std::make_shared<WebSocketSession>(std::move(stream), limits, beast::role_type::client);
  Status connected = co_await session->Connect(host, endpoint.path, endpoint.bearer_token);
  if (!connected) {
    done(std::unexpected(std::move(connected).error()));
    co_return;
  }
  WebSocketCallbacks callbacks = done(std::shared_ptr<WebSocket>(session));
  done = nullptr;
  co_await session->Run(std::move(callbacks));
}

}  // namespace

void ConnectWebSocket(RealEventLoop& loop, WebSocketEndpoint endpoint, WebSocketLimits limits,
                      Done done) {
  std::shared_ptr<asio::ssl::context> context;
  if (endpoint.tls) {
    auto made = MakeClientTlsContext(endpoint.tls->ca_file);
    if (!made) {
      loop.Post([done = std::move(done), error = std::move(made).error()] {
        done(std::unexpected(error));
      });
      return;
    }
    context = *std::move(made);
  }
  asio::co_spawn(loop.context(),
                 Connect(loop, std::move(endpoint), limits, std::move(context), std::move(done)),
                 &RethrowBug);
}

}  // namespace pliant
