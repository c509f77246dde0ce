#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "trainer/collective/byte_pool.h"
#include "trainer/collective/descriptor_stream.h"
#include "trainer/collective/frame_codec.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/shm_borrower.h"
#include "trainer/collective/shm_handshake.h"
#include "trainer/collective/shm_lender.h"
#include "trainer/collective/shm_records.h"

namespace pliant {

// Between processes of one machine: a Unix socket carries heads, small payloads and descriptors of
// memory; large payloads are read where they lie in the sender's memory, which keeps them as they
// are until the reader says that it is done. The socket's end is the peer's end.
//
// Nothing that a peer writes is believed: lengths and places are checked against what it gave,
// which cannot shrink. A payload that is no gradient is copied before anybody looks at it: the
// peer could change it between a check and its use.
class ShmFrameCodec final : public FrameCodec {
 public:
  // `pool` and `memory` are there until it is closed. `key`: what both ends must have. `wake`: see
  // ConnectionDriver::MakeCodec.
  ShmFrameCodec(int socket, const ConnectionLimits& limits, BytePool& pool, SharedMemory& memory,
                const ShmKey& key, ShmSide side, std::function<void()> wake);

  void SayHello(const PeerHello& hello) override;
  void Open() override { handshake_.Open(); }
  void Put(Frame frame) override;
  CodecPause WriteSome() override;
  CodecPause ReadSome(FrameSink& sink) override;
  bool Close() override;
  void Release() override { lender_.ReturnAll(); }

 private:
  using Stop = std::optional<CodecPause>;  // empty: go on

  void PutRecord(const ShmRecord& record, std::span<const std::byte> payload = {});
  bool PutHello();  // false: not yet
  void PutReturns();
  Stop TakeRecords(FrameSink& sink, std::size_t& turn_bytes);
  Stop Take(const ShmRecord& record, std::span<const std::byte> payload, FrameSink& sink);
  Stop TakeChallenge(std::span<const std::byte> payload);
  Stop TakeHello(std::span<const std::byte> payload, FrameSink& sink);
  Stop TakeBlock(const ShmRecord& record);
  Stop TakeFrame(const ShmRecord& record, std::span<const std::byte> payload, FrameSink& sink);
  static Stop FailUnless(const Status& status);

  const ConnectionLimits limits_;
  BytePool& pool_;
  ShmHandshake handshake_;
  ShmLender lender_;
  ShmBorrower borrower_;
  DescriptorStream stream_;
  bool lacks_memory_ = false;            // the kernel gave none for a payload that was to be sent
  std::vector<std::uint64_t> returned_;  // room for PutReturns
};

}  // namespace pliant
