#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/event_loop.h"
#include "trainer/collective/frame_format.h"
#include "trainer/collective/peer_stream.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

struct ConnectionLimits {
  std::uint64_t max_payload_bytes = 0;
  std::uint64_t max_send_queue_bytes = 0;
  Duration max_unacknowledged{};
};

// Why a codec returned to its connection.
struct CodecPause {
  enum class Until {
    kAsked,     // nothing to do until the next call, or the connection is closed
    kNextTurn,  // there is more, but other connections and timers come first
    kReadable,
    kWritable,
    kNever,  // the connection has failed: `reason`
  };
  Until until = Until::kAsked;
  std::string reason;

  static CodecPause Asked() { return {}; }
  static CodecPause NextTurn() { return {.until = Until::kNextTurn, .reason = {}}; }
  static CodecPause Failed(std::string reason) {
    return {.until = Until::kNever, .reason = std::move(reason)};
  }
  static CodecPause Of(IoResult result);  // `result` is not kReady
};

// Receives what a codec reads.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // See PeerHandler::ReceiveBufferFor.
  virtual MutableBytes ReceiveBufferFor(const FrameHeader& header, std::size_t bytes) = 0;
  // These calls may close the connection. They then return false, and the codec returns at once.
  [[nodiscard]] virtual bool OnHello(const PeerHello& hello) = 0;
  [[nodiscard]] virtual bool OnFrame(Frame frame) = 0;
};

// Converts hellos and frames to and from the bytes on one connected, non-blocking socket. It
// neither waits nor posts tasks: its connection does, as each CodecPause says. Runs on the loop's
// thread.
class FrameCodec {
 public:
  virtual ~FrameCodec() = default;
  // Queues this side's hello. It is sent when the other side can verify it.
  virtual void SayHello(const PeerHello& hello) = 0;
  // The peer's hello was accepted: frames follow.
  virtual void Open() = 0;
  // Queues a frame.
  virtual void Put(Frame frame) = 0;
  virtual CodecPause WriteSome() = 0;
  virtual CodecPause ReadSome(FrameSink& sink) = 0;

  // The connection is closed: drops what is queued. Only Release is called after this. True: the
  // peer may still read memory of this process until it closes its end too.
  [[nodiscard]] virtual bool Close() = 0;
  // The peer has closed its end too.
  virtual void Release() = 0;
};

}  // namespace pliant
