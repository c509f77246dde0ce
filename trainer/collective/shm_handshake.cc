#include "trainer/collective/shm_handshake.h"

#include <algorithm>

#include "base/check.h"
#include "base/secret.h"

namespace pliant {

Status ShmHandshake::OnChallenge(std::span<const std::byte> payload) {
  CHECK(phase_ == Phase::kChallenge, "one challenge");
  if (payload.size() != peer_challenge_.size())
    return Invalid("the peer's challenge has the wrong size");
  std::ranges::copy(payload, peer_challenge_.begin());
  phase_ = Phase::kHello;
  return {};
}

std::optional<std::vector<std::byte>> ShmHandshake::TakeHello() {
  if (phase_ == Phase::kChallenge || !hello_) return std::nullopt;
  const std::vector<std::byte> hello = EncodeHello(*hello_);
  hello_.reset();
  const ShmProof proof = Prove(side_, hello);
  std::vector<std::byte> payload(proof.begin(), proof.end());
  payload.insert(payload.end(), hello.begin(), hello.end());
  return payload;
}

Result<PeerHello> ShmHandshake::OnHello(std::span<const std::byte> payload) const {
  if (payload.size() < sizeof(ShmProof)) return Invalid("the peer's hello is malformed");
  const auto hello = payload.subspan(sizeof(ShmProof));
  const ShmSide peer = side_ == ShmSide::kDials ? ShmSide::kAccepts : ShmSide::kDials;
  const ShmProof proof = Prove(peer, hello);
  if (!ConstantTimeEquals(TextOf(payload.first(proof.size())), TextOf(proof)))
    return Fail(ErrorCode::kDenied, "the peer did not prove that it has the peers' key");
  return DecodeHello(hello);
}

void ShmHandshake::Open() {
  CHECK(phase_ == Phase::kHello, "a hello came");
  phase_ = Phase::kOpen;
}

bool ShmHandshake::Expects(ShmRecordType type) const {
  switch (type) {
    case ShmRecordType::kChallenge:
      return phase_ == Phase::kChallenge;
    case ShmRecordType::kHello:
      return phase_ == Phase::kHello;
    case ShmRecordType::kBlock:
    case ShmRecordType::kForget:
    case ShmRecordType::kFrame:
    case ShmRecordType::kReturn:
      return phase_ == Phase::kOpen;
  }
  return false;  // an unknown type
}

ShmProof ShmHandshake::Prove(ShmSide prover, std::span<const std::byte> hello) const {
  const bool dials = side_ == ShmSide::kDials;
  return ProveShm(key_, prover, dials ? challenge_ : peer_challenge_,
                  dials ? peer_challenge_ : challenge_, hello);
}

}  // namespace pliant
