#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fifo.h"
#include "base/handler_memory.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/peer_connection.h"
#include "trainer/collective/peer_stream.h"

namespace pliant {

// Over TCP.
class TcpConnection final : public PeerConnection {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // `owner` and `pool` are there until it is closed. Without a key it is plain.
  TcpConnection(Socket socket, Owner& owner, const ConnectionLimits& limits, BytePool& pool,
                std::shared_ptr<const TlsKey> key, TlsKey::Side side);

  // Connects to `address`, then says `hello`.
  void Dial(const boost::asio::ip::tcp::endpoint& address, const PeerHello& hello);
  void Serve() override;
  void Accept(const PeerHello* hello) override;
  void Send(Frame frame) override;
  void Close() override;
  bool closed() const override { return owner_ == nullptr; }

 private:
  enum class Phase { kConnecting, kSecuring, kHello, kOpen };
  struct Outgoing {
    Frame frame;
    FrameHead head;
    bool has_head = false;  // made when its turn comes: the checksum reads all of the payload
  };
  struct Waiting {
    bool on = false;
    HandlerMemory memory;
  };

  std::shared_ptr<TcpConnection> Self() {
    return std::static_pointer_cast<TcpConnection>(shared_from_this());
  }
  void SendHello(const PeerHello& hello);
  void StartTimer();
  void Begin();
  void Wait(Socket::wait_type what, Waiting& waiting);
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
  void Fail(const std::string& reason) { End({.reason = reason}); }
  void End(const PeerLoss& loss);

  Socket socket_;
  Owner* owner_;  // null: closed
  const ConnectionLimits limits_;
  BytePool& pool_;
  const std::shared_ptr<const TlsKey> key_;
  const TlsKey::Side side_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<PeerStream> stream_;
  Phase phase_ = Phase::kConnecting;
  Waiting readable_;
  Waiting writable_;
  bool flush_posted_ = false;
  HandlerMemory flush_memory_;

  // The frame that is coming in: its head, then its payload.
  FrameHead head_{};
  FrameHeadFields fields_;
  bool has_head_ = false;
  std::size_t received_ = 0;  // of the head or of the payload
  MutableBytes payload_;
  std::uint32_t payload_crc_ = 0;

  Fifo<Outgoing> queue_;
  std::size_t sent_ = 0;  // of the first in queue_: head and payload
  std::uint64_t queued_bytes_ = 0;
  std::vector<std::span<const std::byte>> parts_;  // room for WriteSome
};

}  // namespace pliant
