#include "trainer/collective/frame_format.h"

#include <algorithm>
#include <concepts>

#include "base/crc32c.h"
#include "base/format.h"

namespace pliant {
namespace {

constexpr std::uint32_t kMagic = 0x31464c50;  // "PLF1"
constexpr std::size_t kCrcOffset = 60;

template <std::unsigned_integral T>
void Store(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    at[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> 8 * i);
}

template <std::unsigned_integral T>
T LoadAs(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= std::to_integer<std::uint64_t>(at[i]) << 8 * i;
  return static_cast<T>(value);
}

bool IsKnown(FrameKind kind) { return kind >= kHelloKind && kind <= kFrameKindLast; }

}  // namespace

FrameHead EncodeFrameHead(const FrameHeadFields& fields) {
  const FrameHeader& header = fields.header;
  FrameHead head{};
  Store(&head[0], kMagic);
  head[4] = static_cast<std::byte>(header.kind);
  Store(&head[8], header.membership.term);
  Store(&head[16], header.membership.counter);
  Store(&head[24], header.tick);
  Store(&head[32], header.bucket);
  Store(&head[36], header.node);
  Store(&head[40], header.piece);
  Store(&head[48], fields.payload_bytes);
  Store(&head[56], fields.payload_crc);
  Store(&head[kCrcOffset], Crc32c(std::span(head).first(kCrcOffset)));
  return head;
}

Result<FrameHeadFields> DecodeFrameHead(std::span<const std::byte, kFrameHeadBytes> head) {
  if (LoadAs<std::uint32_t>(&head[0]) != kMagic)
    return Fail(ErrorCode::kCorrupt, "the peer does not speak this protocol");
  if (LoadAs<std::uint32_t>(&head[kCrcOffset]) != Crc32c(head.first(kCrcOffset)))
    return Fail(ErrorCode::kCorrupt, "the head of a frame has a wrong checksum");
  FrameHeadFields fields;
  fields.header = {.kind = static_cast<FrameKind>(head[4]),
                   .membership = {.term = LoadAs<std::uint64_t>(&head[8]),
                                  .counter = LoadAs<std::uint64_t>(&head[16])},
                   .tick = LoadAs<std::uint64_t>(&head[24]),
                   .bucket = LoadAs<std::uint32_t>(&head[32]),
                   .node = LoadAs<std::uint32_t>(&head[36]),
                   .piece = LoadAs<std::uint32_t>(&head[40])};
  fields.payload_bytes = LoadAs<std::uint64_t>(&head[48]);
  fields.payload_crc = LoadAs<std::uint32_t>(&head[56]);
  if (!IsKnown(fields.header.kind))
    return Fail(ErrorCode::kCorrupt,
                Format("frame kind {} is not known", static_cast<int>(fields.header.kind)));
  return fields;
}

std::vector<std::byte> EncodeHello(const PeerHello& hello) {
  std::vector<std::byte> bytes;
  const auto put = [&](auto value) {
    bytes.resize(bytes.size() + sizeof(value));
    Store(&bytes[bytes.size() - sizeof(value)], value);
  };
  const auto put_text = [&](const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    std::ranges::copy(std::as_bytes(std::span(text)), std::back_inserter(bytes));
  };
  put(hello.protocol);
  for (const LearnerId* id : {&hello.from, &hello.to}) {
    put_text(id->name);
    put_text(id->pod_uid);
    put(id->nonce);
    put(static_cast<std::uint32_t>(id->local_rank));
  }
  return bytes;
}

Result<PeerHello> DecodeHello(std::span<const std::byte> bytes) {
  bool whole = true;
  const auto take = [&]<typename T>(T& value) {
    whole = whole && bytes.size() >= sizeof(T);
    if (!whole) return;
    value = LoadAs<T>(bytes.data());
    bytes = bytes.subspan(sizeof(T));
  };
  const auto take_text = [&](std::string& text) {
    std::uint32_t size = 0;
    take(size);
    whole = whole && bytes.size() >= size;
    if (!whole) return;
    text.assign(reinterpret_cast<const char*>(bytes.data()), size);
    bytes = bytes.subspan(size);
  };
  PeerHello hello;
  take(hello.protocol);
  if (whole && hello.protocol != PeerHello{}.protocol)
    return Fail(ErrorCode::kInvalid, Format("the peer speaks protocol {}, this learner {}",
                                            hello.protocol, PeerHello{}.protocol));
  for (LearnerId* id : {&hello.from, &hello.to}) {
    take_text(id->name);
    take_text(id->pod_uid);
    take(id->nonce);
    std::uint32_t local_rank = 0;
    take(local_rank);
    whole = whole && local_rank < kMaxRanksPerLearner;
    id->local_rank = static_cast<int>(local_rank);
  }
  if (!whole || !bytes.empty()) return Fail(ErrorCode::kCorrupt, "the peer's hello is malformed");
  return hello;
}

}  // namespace pliant
