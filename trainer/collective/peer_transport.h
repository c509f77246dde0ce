#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/membership/types.h"

namespace pliant {

// What a frame between two learners carries.
enum class FrameKind : std::uint8_t {
  kOpen = 1,      // opening of a membership: the sender's applied ticks and what it holds
  kStateRequest,  // ask for committed state; node: from its beginning, or what comes next
  kState,         // a slice of committed state
  kNode,          // a piece of a tree node, to the member that finishes that piece (reduce-scatter)
  kRoot,          // a finished piece of the root (all-gather)
  kBuffers,       // the buffers that shard 0 wrote
  kTrailer,       // end of a tick
  kOpened,        // the sender is ready to begin; of a later membership: lets leavers go
  kAbort,         // the sender stopped this tick: leave it too
  kFinished,      // the final model is published
  kSliceFailed,   // to rank 0: why the sender's slice of the checkpoint of this tick is not there
};
// Numbers may change from version to version: learners that train together are of one image, since
// templates change only while a job is suspended.
inline constexpr FrameKind kFrameKindLast = FrameKind::kSliceFailed;

// Whether the payload of such a frame is part of a gradient, which is added up or taken whatever
// its bytes are, once: it may be read while its sender could change it. Follows from the kind,
// which the receiver acts upon; a mark set by the sender would let a peer change what was checked.
constexpr bool IsGradient(FrameKind kind) {
  return kind == FrameKind::kNode || kind == FrameKind::kRoot;
}

// Fixed-size head of every frame. Which of `bucket`, `node`, `piece` matter depends on the kind;
// others are 0.
struct FrameHeader {
  FrameKind kind = FrameKind::kOpen;
  MembershipId membership;
  Tick tick = 0;
  std::uint32_t bucket = 0;
  std::uint32_t node = 0;   // tree node: heap index, root 1, children 2i and 2i+1; of states: flags
                            // of kSliceFailed: the ErrorCode
  std::uint32_t piece = 0;  // rank that finishes the piece
  bool operator==(const FrameHeader&) const = default;
};

// Bytes that somebody keeps alive: sent and received without a copy at this seam.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> view;
};

struct Frame {
  FrameHeader header;
  Bytes payload;
};

// The same, to be written.
struct MutableBytes {
  std::shared_ptr<void> owner;
  std::span<std::byte> view;
};

// Why a connection is gone: it broke, or the peer sent what the protocol does not allow.
struct PeerLoss {
  std::string reason;
};

// Called on the transport's event loop, never within a call to the transport.
class PeerHandler {
 public:
  virtual ~PeerHandler() = default;
  // Where a payload of `bytes` that comes in next is to go, so that it need not be copied there; an
  // empty view: memory of the transport. It is garbage until OnFrame, which may never come; the
  // transport keeps the owner until then. Not every transport asks.
  virtual MutableBytes ReceiveBufferFor(const LearnerId& /*peer*/, const FrameHeader& /*header*/,
                                        std::size_t /*bytes*/) {
    return {};
  }
  virtual void OnPeerConnected(const LearnerId& peer) = 0;
  // Frames of one peer arrive in the order sent, each once, whole, and with a valid checksum.
  virtual void OnFrame(const LearnerId& peer, Frame frame) = 0;
  // The connection is gone, with all frames under way. Once per connection; nothing is retried
  // until Connect.
  virtual void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) = 0;
};

// Connections between the learners of one job. All members are called on the event loop.
class PeerTransport {
 public:
  virtual ~PeerTransport() = default;
  virtual void SetHandler(PeerHandler* handler) = 0;  // borrowed, before anything else

  // Where peers reach this learner, "ip:port".
  virtual std::string address() const = 0;

  // Wants a connection to `peer`. Of two learners the one with the greater id dials; the other
  // accepts, and refuses who it did not Connect to. Both call this. Repeating it is harmless; after
  // OnPeerLost it tries again. A dial that fails is tried again, with a delay, until Disconnect.
  virtual void Connect(const Member& peer) = 0;
  virtual void Disconnect(const LearnerId& peer) = 0;  // no OnPeerLost for it
  virtual bool Connected(const LearnerId& peer) const = 0;

  // Queues a frame. Dropped when there is no connection: OnPeerLost has told, or will tell, of it.
  virtual void Send(const LearnerId& peer, Frame frame) = 0;
};

}  // namespace pliant
