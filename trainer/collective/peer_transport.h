#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/membership/types.h"

namespace pliant {

// The content of a frame between two learners.
enum class FrameKind : std::uint8_t {
  kOpen = 1,      // opening of a membership: how many ticks the sender has applied, what it holds
  kStateRequest,  // request for committed state; node: from its beginning, or the next batch
  kState,         // a slice of committed state
  kNode,          // a piece of a tree node, to the member that finishes that piece (reduce-scatter)
  kRoot,          // a finished piece of the root (all-gather)
  kBuffers,       // the buffers that shard 0 wrote
  kTrailer,       // end of a tick
  kOpened,        // the sender is ready to begin; in a later membership: leavers may exit
  kAbort,         // the sender aborted this tick: the receiver aborts it too
  kFinished,      // the final model is published
  kSliceFailed,   // to rank 0: why the sender's slice of this tick's checkpoint is missing
  kCommunicator,  // from rank 0: the id of the membership's communicator
};
// Numbers may change between versions: learners that train together run the same image, since
// templates change only while a job is suspended.
inline constexpr FrameKind kFrameKindLast = FrameKind::kCommunicator;

// Whether the payload is part of a gradient. Such a payload is added up or stored once, whatever
// its bytes are, so it may be read while its sender could still change it. The answer follows from
// the kind, which the receiver acts upon; with a flag set by the sender, a peer could change what
// was checked.
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
  std::uint32_t node = 0;   // tree node: heap index, root 1, children 2i and 2i+1; in state frames:
                            // flags; in kSliceFailed: the ErrorCode
  std::uint32_t piece = 0;  // rank that finishes the piece
  bool operator==(const FrameHeader&) const = default;
};

// Bytes and the owner that keeps them alive. This interface sends and receives them without a copy.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> view;
};

struct Frame {
  FrameHeader header;
  Bytes payload;
};

// The same, writable.
struct MutableBytes {
  std::shared_ptr<void> owner;
  std::span<std::byte> view;
};

// Why a connection was lost: it broke, or the peer sent what the protocol does not allow.
struct PeerLoss {
  std::string reason;
};

// Called on the transport's event loop, never within a call to the transport.
class PeerHandler {
 public:
  virtual ~PeerHandler() = default;
  // The memory that receives the next payload, of `bytes` bytes, so that it need not be copied
  // there later; with an empty view the transport uses its own. The contents are undefined until
  // OnFrame, which may never come; the transport keeps the owner until then. Not every transport
  // calls this.
  virtual MutableBytes ReceiveBufferFor(const LearnerId& /*peer*/, const FrameHeader& /*header*/,
                                        std::size_t /*bytes*/) {
    return {};
  }
  virtual void OnPeerConnected(const LearnerId& peer) = 0;
  // Frames of one peer arrive in the order sent, each once, whole, and with a valid checksum.
  virtual void OnFrame(const LearnerId& peer, Frame frame) = 0;
  // The connection and all frames in flight are lost. Called once per connection; nothing is
  // retried until Connect.
  virtual void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) = 0;
};

// Connections between the learners of one job. All members are called on the event loop.
class PeerTransport {
 public:
  virtual ~PeerTransport() = default;
  virtual void SetHandler(PeerHandler* handler) = 0;  // borrowed; called before any other member

  // Where peers reach this learner, "ip:port".
  virtual std::string address() const = 0;

  // Requests a connection to `peer`. Both learners call this: the one with the greater id dials;
  // the other accepts, and refuses learners that it did not Connect to. Repeating it is harmless;
  // after OnPeerLost it connects again. A failed dial is retried, with a delay, until Disconnect.
  virtual void Connect(const Member& peer) = 0;
  virtual void Disconnect(const LearnerId& peer) = 0;  // does not call OnPeerLost
  virtual bool Connected(const LearnerId& peer) const = 0;

  // Queues a frame. It is dropped when there is no connection: OnPeerLost has reported the loss, or
  // will.
  virtual void Send(const LearnerId& peer, Frame frame) = 0;
};

}  // namespace pliant
