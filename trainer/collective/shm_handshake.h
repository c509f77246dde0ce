#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/shm_records.h"

namespace pliant {

// The handshake of a shared-memory connection. Each side draws a challenge; then the side that
// dialled and after it the other send their hellos, each with a proof over both challenges that it
// holds the peers' key. Pure: it takes and returns the payloads of records.
class ShmHandshake {
 public:
  // `challenge`: the one that this side has drawn.
  ShmHandshake(const ShmKey& key, ShmSide side, const ShmChallenge& challenge)
      : key_(key), side_(side), challenge_(challenge) {}

  // Sent before anything else.
  const ShmChallenge& challenge() const { return challenge_; }
  Status OnChallenge(std::span<const std::byte> payload);

  // Sets the hello that this side will send.
  void Say(const PeerHello& hello) { hello_ = hello; }
  // The payload of the hello's record; returned once, and only after the peer's challenge has
  // arrived.
  std::optional<std::vector<std::byte>> TakeHello();
  // The peer's hello, if its proof is valid.
  Result<PeerHello> OnHello(std::span<const std::byte> payload) const;

  // The peer's hello was accepted: frames follow.
  void Open();
  bool open() const { return phase_ == Phase::kOpen; }
  // Whether the peer may send such a record now.
  bool Expects(ShmRecordType type) const;

 private:
  enum class Phase { kChallenge, kHello, kOpen };
  ShmProof Prove(ShmSide prover, std::span<const std::byte> hello) const;

  const ShmKey key_;
  const ShmSide side_;
  const ShmChallenge challenge_;
  ShmChallenge peer_challenge_{};
  std::optional<PeerHello> hello_;  // until it is taken
  Phase phase_ = Phase::kChallenge;
};

}  // namespace pliant
