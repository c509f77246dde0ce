#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/frame_codec.h"
#include "trainer/collective/peer_stream.h"

namespace pliant {

struct TcpConnectionLimits {
  std::uint64_t payload_bytes_most = 0;
  std::uint64_t send_queue_bytes_most = 0;
  Duration handshake_timeout{};
  Duration unacknowledged_most{};
};

// One TCP connection that carries frames: secures it, exchanges hellos, then moves frames both
// ways. Lives until it is closed and the loop has let go of it. On the loop's thread.
class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  // What a connection tells its owner; the last thing that it does before it returns to the loop,
  // or followed by a check whether it was closed meanwhile.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The peer said who it is. The owner answers with Accept or Close.
    virtual void OnHello(TcpConnection& connection, const PeerHello& hello) = 0;
    // As PeerHandler::PlaceFor.
    virtual MutableBytes PlaceFor(const TcpConnection& connection, const FrameHeader& header,
                                  std::size_t bytes) = 0;
    virtual void OnConnectionFrame(TcpConnection& connection, Frame frame) = 0;
    // Once, unless the owner closed it itself.
    virtual void OnConnectionClosed(TcpConnection& connection, const std::string& reason) = 0;
  };
  using Socket = boost::asio::ip::tcp::socket;

  // `owner` and `pool` are there until it is closed. Without a key it is plain.
  TcpConnection(Socket socket, Owner& owner, const TcpConnectionLimits& limits, BytePool& pool,
                std::shared_ptr<const TlsKey> key, TlsKey::Side side);

  // Either connects to `address`, then says `hello`; or takes over a socket that was accepted.
  void Dial(const boost::asio::ip::tcp::endpoint& address, const PeerHello& hello);
  void Serve();

  // The hello that came is welcome. An accepting side answers with `hello`.
  void Accept(const PeerHello* hello);
  void Send(Frame frame);
  // Silent: the owner hears nothing more.
  void Close();
  bool closed() const { return owner_ == nullptr; }

 private:
  enum class Phase { kConnecting, kSecuring, kHello, kOpen };
  struct Outgoing {
    Frame frame;
    FrameHead head;
    bool has_head = false;  // made when its turn comes: the checksum reads all of the payload
  };

  void SendHello(const PeerHello& hello);
  void StartTimer();
  void Begin();
  void Wait(Socket::wait_type what, bool& waits);
  void WaitReadable();
  void WaitWritable();
  void FlushSoon();
  void Advance();  // whatever the phase is, as far as it goes now
  bool Secure();
  void ReadSome();
  void WriteSome();
  bool TakeHead();
  bool TakePayload();
  void Consume(std::size_t bytes);
  void Fail(const std::string& reason);

  Socket socket_;
  Owner* owner_;  // null: closed
  const TcpConnectionLimits limits_;
  BytePool& pool_;
  const std::shared_ptr<const TlsKey> key_;
  const TlsKey::Side side_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<PeerStream> stream_;
  Phase phase_ = Phase::kConnecting;
  bool waits_readable_ = false;
  bool waits_writable_ = false;
  bool flush_posted_ = false;

  // The frame that is coming in: its head, then its payload.
  FrameHead head_{};
  FrameHeadFields fields_;
  bool has_head_ = false;
  std::size_t received_ = 0;  // of the head or of the payload
  MutableBytes payload_;
  std::uint32_t payload_crc_ = 0;

  std::deque<Outgoing> queue_;
  std::size_t sent_ = 0;  // of the first in queue_: head and payload
  std::uint64_t queued_bytes_ = 0;
  std::vector<std::span<const std::byte>> parts_;  // room for WriteSome
};

}  // namespace pliant
