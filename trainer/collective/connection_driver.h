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

// One connection that carries frames: proves who is at its ends, exchanges hellos, then moves
// frames both ways. What travels over the socket is its codec's matter; when to write, to read, to
// wait and to give up is decided here. Lives until it is closed and the loop has let go of it. On
// the loop's thread.
class ConnectionDriver final : public std::enable_shared_from_this<ConnectionDriver>,
                               private FrameSink {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;

  // What a connection tells its owner; the last thing that it does before it returns to the loop,
  // or followed by a check whether it was closed meanwhile.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The peer said who it is. The owner answers with Accept or Close.
    virtual void OnHello(ConnectionDriver& connection, const PeerHello& hello) = 0;
    // As PeerHandler::ReceiveBufferFor.
    virtual MutableBytes ReceiveBufferFor(const ConnectionDriver& connection,
                                          const FrameHeader& header, std::size_t bytes) = 0;
    virtual void OnConnectionFrame(ConnectionDriver& connection, Frame frame) = 0;
    // Once, unless the owner closed it itself.
    virtual void OnConnectionClosed(ConnectionDriver& connection, const PeerLoss& loss) = 0;
  };

  // Called once, when the socket is connected. `wake`: has the connection write and read; from any
  // thread, also when the connection is gone.
  using MakeCodec =
      std::function<std::unique_ptr<FrameCodec>(int socket, std::function<void()> wake)>;

  // `owner` is there until it is closed.
  ConnectionDriver(Socket socket, Owner& owner, Duration handshake_timeout, MakeCodec make_codec);

  // Connects to `address`, then says `hello`.
  void Dial(const Endpoint& address, const PeerHello& hello);
  // Begins on a socket that was accepted.
  void Serve();
  // The hello that came is `peer`'s, and welcome. An accepting side answers with `hello`.
  void Accept(std::shared_ptr<const LearnerId> peer, const PeerHello* hello);
  // Who is at the other end; nullptr before Accept.
  const std::shared_ptr<const LearnerId>& peer() const { return peer_; }
  // Once it was accepted.
  void Send(Frame frame);
  // Silent: the owner hears nothing more.
  void Close();
  bool closed() const { return owner_ == nullptr; }

 private:
  void StartTimer();
  void Begin(const PeerHello* hello);
  void Wait(Socket::wait_type what, bool& waiting);
  void FlushSoon();
  void Advance();  // as far as it goes now
  void Follow(const CodecPause& pause);
  void Linger();
  void End(const std::string& reason);

  MutableBytes ReceiveBufferFor(const FrameHeader& header, std::size_t bytes) override;
  bool OnHello(const PeerHello& hello) override;
  bool OnFrame(Frame frame) override;

  Socket socket_;
  Owner* owner_;  // null: closed
  const Duration handshake_timeout_;
  const MakeCodec make_codec_;
  std::shared_ptr<const LearnerId> peer_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<ConnectionWaker> waker_;  // null until it is connected
  std::unique_ptr<FrameCodec> codec_;       // null until it is connected
  bool open_ = false;                       // the hellos were said
  bool awaits_readable_ = false;
  bool awaits_writable_ = false;
  bool flush_posted_ = false;
};

}  // namespace pliant
