#pragma once

// For the .cc files of servers and clients only: pulls asio in.

#include <array>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/role.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/event_loop.h"

namespace pliant {

// Errors come back as values: auto [error, ...] = co_await x.async_y(..., kAwait).
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

// An exception that leaves a coroutine is a bug: it propagates through the event loop's Run.
inline void RethrowBug(std::exception_ptr bug) {
  if (bug) std::rethrow_exception(bug);
}

// A TCP connection, plain or under TLS, as one type, so that Beast's templates on top of it are
// compiled once.
class ByteStream {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Socket = boost::asio::ip::tcp::socket;
  using Transferred = void(boost::system::error_code, std::size_t);

  explicit ByteStream(Socket socket);                             // plain
  ByteStream(Socket socket, boost::asio::ssl::context& context);  // TLS
  ByteStream(ByteStream&&) noexcept;
  ~ByteStream();

  executor_type get_executor();
  Socket& socket();

  // Every operation, running or started later, fails with a timeout after this time, and the
  // connection is closed.
  void ExpiresAfter(Duration duration);
  void ExpiresNever();
  void Close();
  std::string PeerName() const;

  // Do nothing on a plain connection. A client checks that the server's certificate is for
  // `server_name`; the context defines which certificates it trusts.
  boost::asio::awaitable<boost::system::error_code> AcceptTls();
  boost::asio::awaitable<boost::system::error_code> ConnectTls(std::string server_name);
  // Signals that nothing more will be sent, and waits until the other side does the same.
  boost::asio::awaitable<void> ShutDown();

  // asio's AsyncReadStream and AsyncWriteStream; at most kMaxBuffers buffers per call.
  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Transferred>(
        [this](auto handler, const MutableBuffers& first) { Read(first, std::move(handler)); },
        token, FirstOf<MutableBuffers>(buffers));
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Transferred>(
        [this](auto handler, const ConstBuffers& first) { Write(first, std::move(handler)); },
        token, FirstOf<ConstBuffers>(buffers));
  }

 private:
  static constexpr std::size_t kMaxBuffers = 4;
  using MutableBuffers = std::array<boost::asio::mutable_buffer, kMaxBuffers>;
  using ConstBuffers = std::array<boost::asio::const_buffer, kMaxBuffers>;
  using Handler = boost::asio::any_completion_handler<Transferred>;
  struct Impl;

  template <typename List, typename Buffers>
  static List FirstOf(const Buffers& buffers) {
    List list;
    std::size_t next = 0;
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto i = boost::asio::buffer_sequence_begin(buffers); i != end && next < list.size();
         ++i) {
      const typename List::value_type buffer(*i);
      if (buffer.size() > 0) list[next++] = buffer;
    }
    return list;
  }

  void Read(const MutableBuffers& buffers, Handler handler);
  void Write(const ConstBuffers& buffers, Handler handler);

  std::unique_ptr<Impl> impl_;
};

// Beast's WebSocket requires these functions of the connection below it.
void beast_close_socket(ByteStream& stream);
void teardown(boost::beast::role_type role, ByteStream& stream, boost::system::error_code& error);
template <typename Handler>
void async_teardown(boost::beast::role_type, ByteStream& stream, Handler&& handler) {
  // The closing handshake of the WebSocket is over: nothing useful can still arrive.
  stream.Close();
  boost::asio::post(stream.get_executor(), [handler = std::forward<Handler>(handler)]() mutable {
    handler(boost::system::error_code());
  });
}

}  // namespace pliant
