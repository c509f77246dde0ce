#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

enum class IoState {
  kReady,      // went on; there may be more to do at once
  kWantRead,   // nothing more until the socket can be read
  kWantWrite,  // nothing more until the socket can be written
  kClosed,     // `reason` says why
};

struct IoResult {
  IoState state = IoState::kReady;
  std::size_t bytes = 0;  // read, or taken over for writing
  std::string reason;
};

// Bytes each way over a non-blocking socket that somebody else watches and closes.
class PeerStream {
 public:
  virtual ~PeerStream() = default;
  // Call until kReady, before the others.
  virtual IoResult Handshake() = 0;
  virtual IoResult Read(std::span<std::byte> out) = 0;
  // Takes over bytes of `parts`, in order. With kWantWrite, some of the bytes taken may not be on
  // their way: call it (or Flush) again.
  virtual IoResult Write(std::span<const std::span<const std::byte>> parts) = 0;
  // kReady: the kernel has everything that was taken over.
  virtual IoResult Flush() = 0;
  // Whether every byte that Read gives is proven to be the one that was written.
  virtual bool authenticates() const = 0;
};

std::unique_ptr<PeerStream> NewPlainStream(int socket);

// TLS 1.3 in which both ends prove that they hold the same peers' key: an external pre-shared key
// derived from it, with an ephemeral Diffie-Hellman exchange, so that recorded traffic stays closed
// when the key leaks. No certificates.
class TlsKey {
 public:
  static Result<TlsKey> FromPeerKey(std::string_view peer_key);
  TlsKey(TlsKey&&) noexcept;
  TlsKey& operator=(TlsKey&&) noexcept;
  ~TlsKey();

  enum class Side { kDials, kAccepts };
  // The key outlives the stream.
  std::unique_ptr<PeerStream> NewStream(int socket, Side side) const;

 private:
  struct Contexts;
  explicit TlsKey(std::unique_ptr<Contexts> contexts);
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace pliant
