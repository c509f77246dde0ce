#pragma once

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fifo.h"
#include "base/handler_memory.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/kept_allocator.h"
#include "trainer/collective/peer_connection.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/shm_records.h"

namespace pliant {

// Between processes of one machine: a Unix socket carries heads, small payloads and descriptors of
// memory; large payloads are read where they lie in the sender's memory, which keeps them as they
// are until the reader says that it is done. The socket's end is the peer's end.
//
// Nothing that a peer writes is believed: lengths and places are checked against what it gave,
// which cannot shrink. Payloads other than gradients are copied before anybody looks at them, as
// the peer could change them meanwhile; gradients are only added, whatever they are.
class ShmConnection final : public PeerConnection {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  // `owner`, `pool` and `memory` are there until it is closed. `key`: what both ends must have.
  ShmConnection(Socket socket, Owner& owner, const ConnectionLimits& limits, BytePool& pool,
                SharedMemory& memory, const ShmKey& key, ShmSide side);
  ~ShmConnection() override;

  // Connects to the socket at `path`, then says `hello`.
  void Dial(const std::string& path, const PeerHello& hello);
  void Serve() override;
  void Accept(const PeerHello* hello) override;
  void Send(Frame frame) override;
  void Close() override;
  bool closed() const override { return owner_ == nullptr; }

 private:
  enum class Phase { kConnecting, kChallenge, kHello, kOpen };
  class Returns;
  struct Lent {
    std::shared_ptr<const void> owner;
    std::size_t bytes = 0;  // 0: it was returned
  };
  struct OutgoingDescriptor {
    std::uint64_t at = 0;  // sent with this byte of the stream
    std::shared_ptr<const SharedBlock> block;
  };
  struct Waiting {
    bool on = false;
    HandlerMemory memory;
  };

  std::shared_ptr<ShmConnection> Self() {
    return std::static_pointer_cast<ShmConnection>(shared_from_this());
  }
  void StartTimer();
  void Begin();
  void SayHello();
  void Put(const ShmRecord& record, std::span<const std::byte> payload = {});
  void Announce(const std::shared_ptr<const SharedBlock>& block);
  void FlushSoon();
  void Wait(Socket::wait_type what, Waiting& waiting);
  void Advance();  // as far as it goes now
  void WriteSome();
  void ReadSome();
  bool Receive();      // false: nothing more for now, or the connection ended
  bool TakeRecords();  // false: the connection ended, or the turn is over
  bool Take(const ShmRecord& record, std::span<const std::byte> payload);
  bool TakeHello(std::span<const std::byte> payload);
  bool TakeBlock(const ShmRecord& record);
  bool TakeFrame(const ShmRecord& record, std::span<const std::byte> payload);
  bool TakeLent(const ShmRecord& record, Frame& frame);
  bool TakeReturn(std::uint64_t number);
  void PutReturns();
  // All of them return false.
  bool Fail(const std::string& reason) { return End({.reason = reason}); }
  bool Refuse(const std::string& reason) { return End({.reason = reason, .violation = true}); }
  bool End(const PeerLoss& loss);
  void Linger();

  Socket socket_;
  Owner* owner_;  // null: closed
  const ConnectionLimits limits_;
  BytePool& pool_;
  SharedMemory& memory_;
  const ShmKey key_;
  const ShmSide side_;
  boost::asio::steady_timer timer_;
  Phase phase_ = Phase::kConnecting;
  Waiting readable_;
  Waiting writable_;
  bool flush_posted_ = false;
  HandlerMemory flush_memory_;

  ShmChallenge challenge_{};
  ShmChallenge peer_challenge_{};
  PeerHello hello_;  // to say

  // What goes out.
  std::vector<std::byte> out_;
  std::size_t out_sent_ = 0;     // of out_
  std::uint64_t out_begin_ = 0;  // bytes of the stream before out_
  std::deque<OutgoingDescriptor> out_descriptors_;
  std::map<std::uint64_t, std::weak_ptr<const SharedBlock>> announced_;
  // Payloads in blocks are numbered in the order sent, and mostly return in it.
  Fifo<Lent> lent_;
  std::uint64_t first_lent_ = 1;  // the number of the first in lent_, which is not returned
  std::uint64_t lent_bytes_ = 0;
  BytePool staging_;  // for large payloads that do not lie in shared memory

  // What comes in.
  std::vector<std::byte> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::deque<int> in_descriptors_;
  std::map<std::uint64_t, std::shared_ptr<const MappedBlock>> blocks_;
  std::uint64_t last_borrowed_ = 0;
  const KeptAllocator<std::byte> borrowers_;
  std::size_t turn_bytes_ = 0;
  std::shared_ptr<Returns> returns_;
  std::vector<std::uint64_t> returned_;  // room for PutReturns
};

}  // namespace pliant
