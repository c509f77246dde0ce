#pragma once

// For the .cc files of WebSockets only: pulls Beast in.

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/result.h"
#include "base/websocket.h"

namespace pliant {

// One end of a WebSocket; both are alike once the handshake is over. Run keeps it alive, and so
// does every owner that sends.
class WebSocketSession final : public WebSocket,
                               public std::enable_shared_from_this<WebSocketSession> {
 public:
  WebSocketSession(ByteStream stream, WebSocketLimits limits, boost::beast::role_type role);
  ~WebSocketSession() override;

  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  // One of these two is called first.
  boost::asio::awaitable<Status> Accept(Request request);
  boost::asio::awaitable<Status> Connect(std::string host, std::string path,
                                         std::string bearer_token);

  // Reads until the connection ends.
  boost::asio::awaitable<void> Run(WebSocketCallbacks callbacks);

  void Send(std::string text) override;
  void Close(std::string_view reason) override;
  void Drop(std::string_view reason) override;
  const std::string& peer() const override { return peer_; }

 private:
  struct Stream;

  void StartWriting();
  static boost::asio::awaitable<void> Write(std::shared_ptr<WebSocketSession> self);

  const WebSocketLimits limits_;
  const std::string peer_;
  std::unique_ptr<Stream> stream_;
  std::deque<std::string> queue_;  // the front is being written while `writing_`
  std::size_t queued_bytes_ = 0;
  bool writing_ = false;
  bool ending_ = false;  // no texts are sent or delivered any longer
  bool open_ = true;     // whether the socket is open
  std::string goodbye_;
  std::string ended_because_;
};

}  // namespace pliant
