#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

class RealEventLoop;
class SharedMemory;

struct SocketTransportOptions {
  LearnerId self;
  std::string listen_ip = "127.0.0.1";
  std::uint16_t port = 0;    // 0: any free port
  std::string advertise_ip;  // what peers dial; empty: listen_ip

  // The peers' key: both ends prove that they hold it (TLS 1.3, external pre-shared key derived
  // from it). Without one, connections are plain, and only loopback is allowed.
  std::string peer_key;

  // Learners of one machine that can open this folder connect through shared memory instead;
  // payloads in `shared_memory`, which outlives the transport, are then not copied. Empty: TCP
  // only.
  std::string shared_memory_folder;
  SharedMemory* shared_memory = nullptr;

  std::uint64_t max_payload_bytes = std::uint64_t{1} << 30;      // of one frame
  std::uint64_t max_send_queue_bytes = std::uint64_t{16} << 30;  // of one peer; above: dropped
  Duration handshake_timeout = std::chrono::seconds(5);
  Duration max_unacknowledged = std::chrono::seconds(10);  // until the kernel drops the connection
  BackoffOptions dial_backoff = {.first = std::chrono::milliseconds(20),
                                 .most = std::chrono::seconds(2)};
};

// Makes a transport with one connection for each pair of learners: through shared memory where both
// ends have it, otherwise over TCP. The address is "ip:port" or, with a folder for shared memory
// and if the kernel gives any, "ip:port;shm=TAG". `loop` outlives the transport; destroying it
// closes all connections.
Result<std::unique_ptr<PeerTransport>> MakeSocketTransport(RealEventLoop& loop,
                                                           SocketTransportOptions options);

}  // namespace pliant
