#pragma once

// For the .cc files of WebSockets only: pulls Boost.Beast in.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/websocket.h"

namespace pliant {

using TcpStream = boost::beast::tcp_stream;
using TlsStream = boost::beast::ssl_stream<TcpStream>;

// Errors come back as values: auto [error, ...] = co_await x.async_y(..., kAwait).
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

// An exception that leaves a coroutine is a bug: it goes on through the event loop's Run.
inline void RethrowBug(std::exception_ptr bug) {
  if (bug) std::rethrow_exception(bug);
}

inline std::string PeerName(const TcpStream& stream) {
  boost::system::error_code error;
  const auto endpoint = stream.socket().remote_endpoint(error);
  if (error) return "unknown";
  return endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

// Both ends of a WebSocket are alike once the handshake is over. Kept alive by Run, and by whoever
// sends.
template <typename Stream>
class WebSocketSession final : public WebSocket,
                               public std::enable_shared_from_this<WebSocketSession<Stream>> {
 public:
  WebSocketSession(Stream stream, WebSocketLimits limits, boost::beast::role_type role)
      : limits_(limits),
        peer_(PeerName(boost::beast::get_lowest_layer(stream))),
        stream_(std::move(stream)) {
    // From here on the WebSocket layer has its own timer; two on one socket would fight.
    boost::beast::get_lowest_layer(stream_).expires_never();
    auto timeout = boost::beast::websocket::stream_base::timeout::suggested(role);
    timeout.handshake_timeout = limits.handshake_timeout;
    timeout.idle_timeout = limits.idle_timeout;
    timeout.keep_alive_pings = true;
    stream_.set_option(timeout);
    stream_.read_message_max(limits.message_bytes_max);
    stream_.text(true);
  }

  boost::beast::websocket::stream<Stream>& stream() { return stream_; }

  // After the handshake: reads until the connection ends.
  boost::asio::awaitable<void> Run(WebSocketCallbacks callbacks) {
    const auto self = this->shared_from_this();
    boost::beast::flat_buffer buffer;
    while (true) {
      auto [error, bytes] = co_await stream_.async_read(buffer, kAwait);
      if (error) {
        if (ended_because_.empty()) ended_because_ = Reason(error);
        break;
      }
      // What came in after the decision to end the connection is no longer wanted.
      if (ending_) {
        buffer.consume(bytes);
        continue;
      }
      if (!stream_.got_text()) {
        Close("binary messages are not understood");
        continue;
      }
      std::string text(static_cast<const char*>(buffer.data().data()), bytes);
      buffer.consume(bytes);
      if (callbacks.on_message) callbacks.on_message(std::move(text));
    }
    ending_ = true;
    open_ = false;
    boost::beast::get_lowest_layer(stream_).close();
    if (callbacks.on_closed) callbacks.on_closed(ended_because_);
  }

  void Send(std::string text) override {
    if (ending_) return;
    queued_bytes_ += text.size();
    queue_.push_back(std::move(text));
    if (queued_bytes_ > limits_.queued_bytes_max) {
      Drop("it does not read what is sent");
      return;
    }
    StartWriting();
  }

  void Close(std::string_view reason) override {
    if (ending_) return;
    ending_ = true;
    goodbye_ = ended_because_ = reason.substr(0, 123);
    StartWriting();
  }

  void Drop(std::string_view reason) override {
    if (!open_) return;
    ending_ = true;
    open_ = false;
    ended_because_ = reason;
    boost::beast::get_lowest_layer(stream_).close();
  }

  const std::string& peer() const override { return peer_; }

 private:
  void StartWriting() {
    if (writing_ || !open_) return;
    writing_ = true;
    boost::asio::co_spawn(stream_.get_executor(), Write(this->shared_from_this()), &RethrowBug);
  }

  // At most one of these runs.
  static boost::asio::awaitable<void> Write(std::shared_ptr<WebSocketSession> self) {
    while (self->open_ && !self->queue_.empty()) {
      const auto buffer = boost::asio::buffer(self->queue_.front());
      auto [error, bytes] = co_await self->stream_.async_write(buffer, kAwait);
      if (error) {
        self->Drop(Reason(error));
        break;
      }
      self->queued_bytes_ -= self->queue_.front().size();
      self->queue_.pop_front();
    }
    if (self->open_ && self->ending_) {
      boost::beast::websocket::close_reason reason(boost::beast::websocket::close_code::normal);
      reason.reason = self->goodbye_;
      auto [error] = co_await self->stream_.async_close(reason, kAwait);
      // Run sees the end by itself, unless the goodbye could not be said.
      if (error) self->Drop(self->goodbye_);
    }
    self->writing_ = false;
  }

  static std::string Reason(const boost::system::error_code& error) {
    namespace websocket = boost::beast::websocket;
    if (error == websocket::error::closed) return "closed by the other side";
    if (error == boost::asio::error::eof || error == boost::asio::error::connection_reset) {
      return "the other side is gone";
    }
    if (error == boost::beast::error::timeout) return "the other side is silent";
    return error.message();
  }

  const WebSocketLimits limits_;
  const std::string peer_;
  boost::beast::websocket::stream<Stream> stream_;
  std::deque<std::string> queue_;  // the front is being written while `writing_`
  std::size_t queued_bytes_ = 0;
  bool writing_ = false;
  bool ending_ = false;  // no more texts in either direction
  bool open_ = true;     // the socket
  std::string goodbye_;
  std::string ended_because_;
};

}  // namespace pliant
