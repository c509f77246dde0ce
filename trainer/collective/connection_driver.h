#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "trainer/collective/connection_waker.h"
#include "trainer/collective/frame_codec.h"

namespace pliant {

// One connection that carries frames: authenticates both ends, exchanges hellos, then moves frames
// in both directions. Its codec decides which bytes travel over the socket; this class decides when
// to write, read, wait and time out. Lives until it is closed and the loop has released it. Runs on
// the loop's thread.
class ConnectionDriver final : public std::enable_shared_from_this<ConnectionDriver>,
                               private FrameSink {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;

  // Notifications of a connection to its owner. After each of them the connection returns to the
  // loop, or checks whether it was closed meanwhile.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The peer's hello has arrived. The owner answers with Accept or Close.
    virtual void OnHello(ConnectionDriver& connection, const PeerHello& hello) = 0;
    // See PeerHandler::ReceiveBufferFor.
    virtual MutableBytes ReceiveBufferFor(const ConnectionDriver& connection,
                                          const FrameHeader& header, std::size_t bytes) = 0;
    virtual void OnConnectionFrame(ConnectionDriver& connection, Frame frame) = 0;
    // Called once, unless the owner itself closed the connection.
    virtual void OnConnectionClosed(ConnectionDriver& connection, const PeerLoss& loss) = 0;
  };

  // Called once, when the socket is connected. `wake` makes the connection write and read; it may
  // be called on any thread, also when the connection no longer exists.
  using MakeCodec =
      std::function<std::unique_ptr<FrameCodec>(int socket, std::function<void()> wake)>;

  // `owner` exists until the connection is closed.
  ConnectionDriver(Socket socket, Owner& owner, Duration handshake_timeout, MakeCodec make_codec);

  // Connects to `address`, then sends `hello`.
  void Dial(const Endpoint& address, const PeerHello& hello);
  // Starts on an accepted socket.
  void Serve();
  // Accepts the received hello, which is `peer`'s. The side that accepted the socket answers with
  // `hello`; the side that dialled passes nullptr.
  void Accept(std::shared_ptr<const LearnerId> peer, const PeerHello* hello);
  // The learner at the other end; nullptr before Accept.
  const std::shared_ptr<const LearnerId>& peer() const { return peer_; }
  // Allowed after Accept only.
  void Send(Frame frame);
  // The owner receives no further calls.
  void Close();
  bool closed() const { return owner_ == nullptr; }

 private:
  void StartTimer();
  void Begin(const PeerHello* hello);
  void Wait(Socket::wait_type what, bool& waiting);
  void FlushSoon();
  void Advance();  // writes and reads as much as possible now
  void Follow(const CodecPause& pause);
  void Linger();
  void End(const std::string& reason);

  MutableBytes ReceiveBufferFor(const FrameHeader& header, std::size_t bytes) override;
  bool OnHello(const PeerHello& hello) override;
  bool OnFrame(Frame frame) override;

  Socket socket_;
  Owner* owner_;  // null when closed
  const Duration handshake_timeout_;
  const MakeCodec make_codec_;
  std::shared_ptr<const LearnerId> peer_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<ConnectionWaker> waker_;  // null until it is connected
  std::unique_ptr<FrameCodec> codec_;       // null until it is connected
  bool open_ = false;                       // the peer's hello was accepted
  bool awaits_readable_ = false;
  bool awaits_writable_ = false;
  bool flush_posted_ = false;
};

}  // namespace pliant
