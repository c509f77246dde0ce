#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

enum class IoState {
  kReady,      // made progress; more may be possible at once
  kWantRead,   // no progress until the socket is readable
  kWantWrite,  // no progress until the socket is writable
  kClosed,     // `reason` says why
};

struct IoResult {
  IoState state = IoState::kReady;
  std::size_t bytes = 0;  // read, or accepted for writing
  std::string reason;
};

// Bytes in both directions over a non-blocking socket, which the owner polls and closes.
class PeerStream {
 public:
  virtual ~PeerStream() = default;
  // Call it until kReady, before the others.
  virtual IoResult Handshake() = 0;
  virtual IoResult Read(std::span<std::byte> out) = 0;
  // Accepts bytes of `parts`, in order. With kWantWrite some of the accepted bytes may not be sent
  // yet: call it (or Flush) again.
  virtual IoResult Write(std::span<const std::span<const std::byte>> parts) = 0;
  // kReady: the kernel has all accepted bytes.
  virtual IoResult Flush() = 0;
  // Whether every byte that Read returns is proven to be the one that was written.
  virtual bool authenticates() const = 0;
};

std::unique_ptr<PeerStream> NewPlainStream(int socket);

// TLS 1.3 in which both ends prove that they hold the same peers' key: an external pre-shared key
// derived from it, with an ephemeral Diffie-Hellman exchange, so that recorded traffic stays secret
// if the key leaks later. There are no certificates.
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
