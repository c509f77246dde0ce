#include "base/byte_stream.h"

#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <optional>

namespace pliant {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using TcpStream = boost::beast::tcp_stream;

// A client that is being refused may still send this much before the connection is cut.
constexpr std::size_t kMaxDiscardedBytes = 8 * 1024 * 1024;

}  // namespace

struct ByteStream::Impl {
  explicit Impl(Socket socket) : tcp(std::move(socket)) {}
  Impl(Socket socket, asio::ssl::context& context) : tcp(std::move(socket)) {
    tls.emplace(tcp, context);
  }

  TcpStream tcp;
  std::optional<asio::ssl::stream<TcpStream&>> tls;  // none: plain
};

ByteStream::ByteStream(Socket socket) : impl_(std::make_unique<Impl>(std::move(socket))) {}
ByteStream::ByteStream(Socket socket, asio::ssl::context& context)
    : impl_(std::make_unique<Impl>(std::move(socket), context)) {}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

ByteStream::executor_type ByteStream::get_executor() { return impl_->tcp.get_executor(); }
ByteStream::Socket& ByteStream::socket() { return impl_->tcp.socket(); }
void ByteStream::ExpiresAfter(Duration duration) { impl_->tcp.expires_after(duration); }
void ByteStream::ExpiresNever() { impl_->tcp.expires_never(); }
void ByteStream::Close() { impl_->tcp.close(); }

std::string ByteStream::PeerName() const {
  error_code error;
  const auto endpoint = impl_->tcp.socket().remote_endpoint(error);
  if (error) return "unknown";
  return endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

asio::awaitable<error_code> ByteStream::AcceptTls() {
  if (!impl_->tls) co_return error_code();
  auto [error] = co_await impl_->tls->async_handshake(asio::ssl::stream_base::server, kAwait);
  co_return error;
}

asio::awaitable<error_code> ByteStream::ConnectTls(std::string server_name) {
  if (!impl_->tls) co_return error_code();
  SSL* const ssl = impl_->tls->native_handle();
  if (SSL_set1_host(ssl, server_name.c_str()) != 1 ||
      SSL_set_tlsext_host_name(ssl, server_name.c_str()) != 1) {
    co_return asio::error::invalid_argument;
  }
  auto [error] = co_await impl_->tls->async_handshake(asio::ssl::stream_base::client, kAwait);
  co_return error;
}

asio::awaitable<void> ByteStream::ShutDown() {
  if (impl_->tls) {
    auto [ignored] = co_await impl_->tls->async_shutdown(kAwait);
    static_cast<void>(ignored);
  }
  error_code error;
  impl_->tcp.socket().shutdown(Socket::shutdown_send, error);
  // Closing with unread bytes would reset the connection, and the other side might never read the
  // last answer.
  std::array<char, 16384> discarded;
  const auto buffer = asio::buffer(discarded);
  for (std::size_t total = 0; !error && total < kMaxDiscardedBytes;) {
    auto [read_error, bytes] = co_await impl_->tcp.async_read_some(buffer, kAwait);
    error = read_error;
    total += bytes;
  }
  Close();
}

void ByteStream::Read(const MutableBuffers& buffers, Handler handler) {
  if (impl_->tls) {
    impl_->tls->async_read_some(buffers, std::move(handler));
  } else {
    impl_->tcp.async_read_some(buffers, std::move(handler));
  }
}

void ByteStream::Write(const ConstBuffers& buffers, Handler handler) {
  if (impl_->tls) {
    impl_->tls->async_write_some(buffers, std::move(handler));
  } else {
    impl_->tcp.async_write_some(buffers, std::move(handler));
  }
}

void beast_close_socket(ByteStream& stream) { stream.Close(); }

void teardown(boost::beast::role_type, ByteStream& stream, error_code& error) {
  error = {};
  stream.Close();
}

}  // namespace pliant
