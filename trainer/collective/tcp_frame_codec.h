#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/collective/byte_pool.h"
#include "trainer/collective/frame_codec.h"
#include "trainer/collective/peer_stream.h"

namespace pliant {

// The codec for TCP: frames as frame_format.h defines them, through TLS if there is a key.
class TcpFrameCodec final : public FrameCodec {
 public:
  // `pool` exists until it is closed. Without a key the connection is plain.
  TcpFrameCodec(int socket, const ConnectionLimits& limits, BytePool& pool,
                std::shared_ptr<const TlsKey> key, TlsKey::Side side);

  void SayHello(const PeerHello& hello) override;
  void Open() override;
  void Put(Frame frame) override;
  CodecPause WriteSome() override;
  CodecPause ReadSome(FrameSink& sink) override;
  bool Close() override;
  void Release() override {}

 private:
  enum class Phase { kSecuring, kHello, kOpen };
  struct Outgoing {
    Frame frame;
    FrameHead head;
    bool has_head = false;  // the head is made late: its checksum reads all of the payload
  };
  // Empty: continue.
  std::optional<CodecPause> TakeHead(FrameSink& sink);
  std::optional<CodecPause> TakePayload(FrameSink& sink);
  void GatherParts();
  void Consume(std::size_t bytes);

  const ConnectionLimits limits_;
  BytePool& pool_;
  const std::shared_ptr<const TlsKey> key_;
  const std::unique_ptr<PeerStream> stream_;
  Phase phase_ = Phase::kSecuring;

  // The frame that is being received: its head, then its payload.
  FrameHead head_{};
  FrameHeadFields fields_;
  bool has_head_ = false;
  std::size_t received_ = 0;  // bytes of the head or of the payload
  MutableBytes payload_;
  std::uint32_t payload_crc_ = 0;

  std::deque<Outgoing> queue_;
  std::size_t sent_ = 0;  // bytes of the first in queue_: head and payload
  std::uint64_t queued_bytes_ = 0;
  std::vector<std::span<const std::byte>> parts_;  // scratch of WriteSome
};

}  // namespace pliant
