#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/collective/peer_transport.h"

// Frames as bytes on a connection: a head of 64 bytes, little-endian, then the payload.
//
//   0  magic "PLF1"     4  kind (1 byte), 3 bytes 0    8  term         16  counter
//  24  tick            32  bucket     36  node        40  piece       44  4 bytes 0
//  48  payload bytes   56  CRC-32C of the payload     60  CRC-32C of the 60 bytes before
//
// Where the connection itself authenticates every byte (TLS) the payload has no CRC: the field is
// 0.
namespace pliant {

inline constexpr std::size_t kFrameHeadBytes = 64;
using FrameHead = std::array<std::byte, kFrameHeadBytes>;

// The kind of the first frame in each direction, which the transport does not pass on.
inline constexpr FrameKind kHelloKind{0};

struct FrameHeadFields {
  FrameHeader header;
  std::uint64_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;
  bool operator==(const FrameHeadFields&) const = default;
};

FrameHead EncodeFrameHead(const FrameHeadFields& fields);
// kCorrupt when it is not a head: another protocol, damaged bytes, or an unknown kind.
Result<FrameHeadFields> DecodeFrameHead(std::span<const std::byte, kFrameHeadBytes> head);

// The learners at the two ends of a connection. The payload of the hello frame.
struct PeerHello {
  std::uint32_t protocol = 1;
  LearnerId from;
  LearnerId to;
  bool operator==(const PeerHello&) const = default;
};
inline constexpr std::size_t kMaxHelloBytes = 4096;

std::vector<std::byte> EncodeHello(const PeerHello& hello);
Result<PeerHello> DecodeHello(std::span<const std::byte> bytes);

}  // namespace pliant
