#include "trainer/collective/shm_records.h"

#include <algorithm>
#include <string>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace pliant {
namespace {

constexpr std::string_view kKeyInfo = "pliant peer transport, shared memory, version 1";

std::array<unsigned char, 32> Hmac(std::span<const unsigned char> key, std::string_view text) {
  std::array<unsigned char, 32> result{};
  unsigned size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const bool made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(),
                         result.data(), &size) != nullptr;
  CHECK(made && size == result.size(), "OpenSSL has SHA-256");
  return result;
}

}  // namespace

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ShmRecord RecordOf(const FrameHeader& header) {
  return {.type = ShmRecordType::kFrame,
          .kind = static_cast<std::uint32_t>(header.kind),
          .term = header.membership.term,
          .counter = header.membership.counter,
          .tick = header.tick,
          .bucket = header.bucket,
          .node = header.node,
          .piece = header.piece};
}

std::optional<FrameHeader> HeaderOf(const ShmRecord& record) {
  if (record.kind < static_cast<std::uint32_t>(FrameKind::kOpen) ||
      record.kind > static_cast<std::uint32_t>(kFrameKindLast))
    return std::nullopt;
  return FrameHeader{.kind = static_cast<FrameKind>(record.kind),
                     .membership = {.term = record.term, .counter = record.counter},
                     .tick = record.tick,
                     .bucket = record.bucket,
                     .node = record.node,
                     .piece = record.piece};
}

ShmKey ShmKeyOf(std::string_view peer_key) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(peer_key.data());
  return Hmac({bytes, peer_key.size()}, kKeyInfo);
}

ShmChallenge DrawShmChallenge() {
  ShmChallenge challenge{};
  auto* const bytes = reinterpret_cast<unsigned char*>(challenge.data());
  CHECK(RAND_bytes(bytes, static_cast<int>(challenge.size())) == 1, "OpenSSL draws");
  return challenge;
}

ShmProof ProveShm(const ShmKey& key, ShmSide prover, const ShmChallenge& dialler,
                  const ShmChallenge& acceptor, std::span<const std::byte> hello) {
  std::string text(prover == ShmSide::kDials ? "dials" : "accepts");
  text += TextOf(dialler);
  text += TextOf(acceptor);
  text += TextOf(hello);
  ShmProof proof{};
  std::ranges::transform(Hmac(key, text), proof.begin(),
                         [](unsigned char byte) { return static_cast<std::byte>(byte); });
  return proof;
}

}  // namespace pliant
