#include "base/websocket_session.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <utility>

#include "base/utf8.h"

namespace pliant {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

constexpr std::size_t kMaxReasonBytes = 123;  // limit of the protocol

std::string Reason(const error_code& error) {
  if (error == websocket::error::closed) return "closed by the other side";
  if (error == asio::error::eof || error == asio::error::connection_reset ||
      error == asio::ssl::error::stream_truncated) {
    return "the other side is gone";
  }
  if (error == beast::error::timeout) return "the other side is silent";
  return error.message();
}

// The reason for a failed handshake: the status of the server if it answered.
Error Declined(const websocket::response_type& response, const error_code& error) {
  if (error != websocket::error::upgrade_declined) {
    return {ErrorCode::kUnavailable, "WebSocket handshake: " + Reason(error)};
  }
  const unsigned status = response.result_int();
  std::string message = "the server answers " + std::to_string(status);
  if (status == 401) message += ": the token is not valid";
  if (status == 403) message += ": this token may not do that";
  return {status == 401 || status == 403 ? ErrorCode::kDenied : ErrorCode::kUnavailable, message};
}

}  // namespace

struct WebSocketSession::Stream {
  explicit Stream(ByteStream stream) : websocket(std::move(stream)) {}
  void CloseSocket() { websocket.next_layer().Close(); }

  // Without compression: small messages on a cluster's network are not worth its memory.
  boost::beast::websocket::stream<ByteStream, false> websocket;
};

WebSocketSession::WebSocketSession(ByteStream stream, WebSocketLimits limits, beast::role_type role)
    : limits_(limits), peer_(stream.PeerName()) {
  // The WebSocket layer has its own timer from here on; two on one socket would conflict.
  stream.ExpiresNever();
  stream_ = std::make_unique<Stream>(std::move(stream));
  auto timeout = websocket::stream_base::timeout::suggested(role);
  timeout.handshake_timeout = limits.handshake_timeout;
  timeout.idle_timeout = limits.idle_timeout;
  timeout.keep_alive_pings = true;
  stream_->websocket.set_option(timeout);
  stream_->websocket.read_message_max(limits.max_message_bytes);
  stream_->websocket.text(true);
}

WebSocketSession::~WebSocketSession() = default;

asio::awaitable<Status> WebSocketSession::Accept(Request request) {
  auto [error] = co_await stream_->websocket.async_accept(request, kAwait);
  if (error) co_return Fail(ErrorCode::kUnavailable, "WebSocket handshake: " + Reason(error));
  co_return Status();
}

asio::awaitable<Status> WebSocketSession::Connect(std::string host, std::string path,
                                                  std::string bearer_token) {
  if (!bearer_token.empty()) {
    stream_->websocket.set_option(websocket::stream_base::decorator(
        [authorization = "Bearer " + bearer_token](websocket::request_type& request) {
          request.set(beast::http::field::authorization, authorization);
        }));
  }
  websocket::response_type response;
  auto [error] = co_await stream_->websocket.async_handshake(response, host, path, kAwait);
  if (error) co_return std::unexpected(Declined(response, error));
  co_return Status();
}

asio::awaitable<void> WebSocketSession::Run(WebSocketCallbacks callbacks) {
  const auto self = shared_from_this();
  beast::flat_buffer buffer;
  while (true) {
    auto [error, bytes] = co_await stream_->websocket.async_read(buffer, kAwait);
    if (error) {
      if (ended_because_.empty()) ended_because_ = Reason(error);
      break;
    }
    std::string text(static_cast<const char*>(buffer.data().data()), bytes);
    buffer.consume(bytes);
    // Messages that arrive after the decision to end the connection are dropped.
    if (ending_) continue;
    if (!stream_->websocket.got_text()) {
      Close("binary messages are not supported");
      continue;
    }
    if (callbacks.on_message) callbacks.on_message(std::move(text));
  }
  ending_ = true;
  open_ = false;
  stream_->CloseSocket();
  if (callbacks.on_closed) callbacks.on_closed(ended_because_);
}

void WebSocketSession::Send(std::string text) {
  if (ending_) return;
  queued_bytes_ += text.size();
  queue_.push_back(std::move(text));
  if (queued_bytes_ > limits_.max_queued_bytes) {
    Drop("the peer does not read its messages");
    return;
  }
  StartWriting();
}

void WebSocketSession::Close(std::string_view reason) {
  if (ending_) return;
  ending_ = true;
  goodbye_ = ended_because_ = CutAtCharacter(reason, kMaxReasonBytes);
  StartWriting();
}

void WebSocketSession::Drop(std::string_view reason) {
  if (!open_) return;
  ending_ = true;
  open_ = false;
  ended_because_ = reason;
  stream_->CloseSocket();
}

void WebSocketSession::StartWriting() {
  if (writing_ || !open_) return;
  writing_ = true;
  asio::co_spawn(stream_->websocket.get_executor(), Write(shared_from_this()), &RethrowBug);
}

// At most one instance of this coroutine runs.
asio::awaitable<void> WebSocketSession::Write(std::shared_ptr<WebSocketSession> self) {
  auto& stream = self->stream_->websocket;
  while (self->open_ && !self->queue_.empty()) {
    const auto buffer = asio::buffer(self->queue_.front());
    auto [error, bytes] = co_await stream.async_write(buffer, kAwait);
    if (error) {
      self->Drop(Reason(error));
      break;
    }
    self->queued_bytes_ -= self->queue_.front().size();
    self->queue_.pop_front();
  }
  if (self->open_ && self->ending_) {
    websocket::close_reason reason(websocket::close_code::normal);
    reason.reason = self->goodbye_;
    auto [error] = co_await stream.async_close(reason, kAwait);
    // Run detects the end by itself, unless the close frame could not be sent.
    if (error) self->Drop(self->goodbye_);
  }
  self->writing_ = false;
}

}  // namespace pliant
