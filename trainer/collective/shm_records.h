#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "trainer/collective/frame_format.h"

namespace pliant {

// Records travel over the socket between two processes of one machine, some of them followed by a
// payload. Both ends run on the same processor, so a record is sent as its bytes in memory.
enum class ShmRecordType : std::uint32_t {
  kChallenge = 0x314d4853,  // "SHM1"; first each way. Payload: ShmChallenge
  kHello,                   // payload: ShmProof, then the hello
  kBlock,                   // `block` of `bytes`; its descriptor is sent with it
  kForget,                  // `block` is no longer used
  kFrame,   // `bytes` of payload: after the record, or (`block` > 0) in a block at `offset`
  kReturn,  // `offset`: the number of the payload in a block that was read
};

struct ShmRecord {
  ShmRecordType type = ShmRecordType::kFrame;
  std::uint32_t kind = 0;
  std::uint64_t term = 0;
  std::uint64_t counter = 0;
  std::uint64_t tick = 0;
  std::uint32_t bucket = 0;
  std::uint32_t node = 0;
  std::uint32_t piece = 0;
  std::uint32_t zero = 0;
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  bool has_payload() const {
    return type == ShmRecordType::kChallenge || type == ShmRecordType::kHello ||
           (type == ShmRecordType::kFrame && block == 0);
  }
};
static_assert(std::is_trivially_copyable_v<ShmRecord> &&
              std::has_unique_object_representations_v<ShmRecord>);

// A payload up to this size is sent over the socket: lending it would cost as much.
inline constexpr std::size_t kMaxShmInline = std::size_t{32} << 10;

ShmRecord RecordOf(const FrameHeader& header);
// Empty: not a frame between learners.
std::optional<FrameHeader> HeaderOf(const ShmRecord& record);

std::string_view TextOf(std::span<const std::byte> bytes);  // not a copy

// Both ends prove that they hold the same peers' key, over the challenges that both have drawn.
using ShmKey = std::array<unsigned char, 32>;
using ShmChallenge = std::array<std::byte, 32>;
using ShmProof = std::array<std::byte, 32>;
enum class ShmSide : unsigned char { kDials, kAccepts };

ShmKey ShmKeyOf(std::string_view peer_key);
ShmChallenge DrawShmChallenge();
// The proof of the side `prover` that it sends `hello`.
ShmProof ProveShm(const ShmKey& key, ShmSide prover, const ShmChallenge& dialler,
                  const ShmChallenge& acceptor, std::span<const std::byte> hello);

}  // namespace pliant
