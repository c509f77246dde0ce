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
    kAsked,     // there is nothing to do, or the connection is closed
    kNextTurn,  // there is more, but other connections and timers come first
    kReadable,
    kWritable,
    kNever,  // the connection is over: `reason`
  };
  Until until = Until::kAsked;
  std::string reason;

  static CodecPause Asked() { return {}; }
  static CodecPause NextTurn() { return {.until = Until::kNextTurn, .reason = {}}; }
  static CodecPause Failed(std::string reason) {
    return {.until = Until::kNever, .reason = std::move(reason)};
  }
  static CodecPause Of(IoResult result);  // which is not kReady
};

// What a codec reads goes here.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // As PeerHandler::ReceiveBufferFor.
  virtual MutableBytes ReceiveBufferFor(const FrameHeader& header, std::size_t bytes) = 0;
  // These may close the connection. False: they did, and the codec returns at once.
  [[nodiscard]] virtual bool OnHello(const PeerHello& hello) = 0;
  [[nodiscard]] virtual bool OnFrame(Frame frame) = 0;
};

// Hellos and frames as what travels over one connected, non-blocking socket. It neither waits nor
// posts: its connection does, as the pauses say. On the loop's thread.
class FrameCodec {
 public:
  virtual ~FrameCodec() = default;
  // The hello of this side. It goes out when the other side can verify it.
  virtual void SayHello(const PeerHello& hello) = 0;
  // The peer's hello is welcome: frames follow.
  virtual void Open() = 0;
  // Queues a frame.
  virtual void Put(Frame frame) = 0;
  virtual CodecPause WriteSome() = 0;
  virtual CodecPause ReadSome(FrameSink& sink) = 0;

  // The connection is closed: only Release is called from here on. It lets go of what it has
  // queued. True: the peer may still read memory of this process until it closes its end, too.
  [[nodiscard]] virtual bool Close() = 0;
  // The peer has closed its end, too.
  virtual void Release() = 0;
};

}  // namespace pliant
