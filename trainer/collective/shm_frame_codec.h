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

// The codec between processes of one machine. A Unix socket carries heads, small payloads and
// memory descriptors. Large payloads are read in place in the sender's memory; the sender keeps
// them unchanged until the reader returns them. When the socket closes, the peer is gone.
//
// Peers are not trusted: lengths and offsets are checked against the blocks that the peer sent,
// which cannot shrink. A payload that is not a gradient is copied before it is read: the peer could
// change it between a check and its use.
class ShmFrameCodec final : public FrameCodec {
 public:
  // `pool` and `memory` exist until it is closed. `key`: both ends must hold it. `wake`: see
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
  using Stop = std::optional<CodecPause>;  // empty: continue

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
  bool lacks_memory_ = false;            // the kernel gave no shared memory for a payload
  std::vector<std::uint64_t> returned_;  // scratch of PutReturns
};

}  // namespace pliant
