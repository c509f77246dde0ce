#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "trainer/collective/frame_codec.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

struct ConnectionLimits {
  std::uint64_t payload_bytes_most = 0;
  std::uint64_t send_queue_bytes_most = 0;
  Duration handshake_timeout{};
  Duration unacknowledged_most{};
};

// One connection that carries frames: proves who is at its ends, exchanges hellos, then moves
// frames both ways. Lives until it is closed and the loop has let go of it. On the loop's thread.
class PeerConnection : public std::enable_shared_from_this<PeerConnection> {
 public:
  // What a connection tells its owner; the last thing that it does before it returns to the loop,
  // or followed by a check whether it was closed meanwhile.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The peer said who it is. The owner answers with Accept or Close.
    virtual void OnHello(PeerConnection& connection, const PeerHello& hello) = 0;
    // As PeerHandler::PlaceFor.
    virtual MutableBytes PlaceFor(const PeerConnection& connection, const FrameHeader& header,
                                  std::size_t bytes) = 0;
    virtual void OnConnectionFrame(PeerConnection& connection, Frame frame) = 0;
    // Once, unless the owner closed it itself.
    virtual void OnConnectionClosed(PeerConnection& connection, const PeerLoss& loss) = 0;
  };

  virtual ~PeerConnection() = default;
  // Begins on a socket that was accepted.
  virtual void Serve() = 0;
  // The hello that came is welcome. An accepting side answers with `hello`.
  virtual void Accept(const PeerHello* hello) = 0;
  virtual void Send(Frame frame) = 0;
  // Silent: the owner hears nothing more.
  virtual void Close() = 0;
  virtual bool closed() const = 0;
};

}  // namespace pliant
