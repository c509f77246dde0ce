// Fuzzes what a peer sends: frame heads, the hello of a connection, and the payloads that the
// runtime reads. The first byte of an input selects one.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "tests/fuzz/fuzz_target.h"
#include "trainer/collective/frame_format.h"
#include "trainer/collective/shard_dealing.h"
#include "trainer/protocol/opening.h"
#include "trainer/protocol/state_transfer.h"
#include "trainer/protocol/tick_round.h"

namespace pliant {
namespace {

constexpr int kShards = 8;

enum Kind : char { kHead, kHello, kStateSummary, kTrailer, kState, kKinds };

std::string Seed(Kind kind, std::span<const std::byte> bytes) {
  return std::string(1, kind) + fuzz::TextOf(bytes);
}

// Decodes the head as it is, and again with a valid checksum.
void RunHead(std::span<const std::byte> bytes) {
  if (bytes.size() < kFrameHeadBytes) return;
  FrameHead head{};
  std::ranges::copy(bytes.first<kFrameHeadBytes>(), head.begin());
  (void)DecodeFrameHead(head);
  constexpr std::size_t kCrcOffset = kFrameHeadBytes - sizeof(std::uint32_t);
  const std::uint32_t crc = Crc32c(std::span(head).first<kCrcOffset>());
  std::memcpy(&head[kCrcOffset], &crc, sizeof crc);
  const auto fields = DecodeFrameHead(head);
  if (!fields) return;
  CHECK(fields->header.kind <= kFrameKindLast, "a kind that is known");
  const auto again = DecodeFrameHead(EncodeFrameHead(*fields));
  CHECK(again && *again == *fields, "what was read can be written and read");
}

// One of two members holds the state of tick 4, the other sends this input.
void RunHolding(std::span<const std::byte> bytes) {
  constexpr Tick kTicks = 100;
  static const Schedule schedule = *Schedule::Make(
      {.train_samples = 16, .epochs = kTicks, .global_batch_size = 16, .logical_shards = kShards});
  const auto holding = DecodeStateSummary(bytes, schedule, /*bitwise=*/true);
  if (!holding) return;
  const Bytes again = EncodeStateSummary(*holding);
  CHECK(DecodeStateSummary(again.view, schedule, /*bitwise=*/true).has_value(),
        "what was read can be written and read");
  Opening opening(2, 0, {.position = {.has_state = true, .applied_ticks = 4}, .current = true});
  opening.OnOpen(1, *holding);
  (void)opening.next();
  CHECK(opening.furthest()->position.applied_ticks <= kTicks, "no member is ahead of the job");
  const ShardDealing dealing =
      ReassignMissingShards(kShards, opening.finished(), opening.in_sync());
  CHECK(IsComplete(dealing.map), "every shard has an owner");
}

void RunTrailer(std::span<const std::byte> bytes) {
  const auto trailer = DecodeTrailer(bytes);
  if (!trailer) return;
  TickRound round;
  round.Begin(AssignShards(kShards, 3), /*self=*/0, /*needs_buffers=*/true, {true, true, false});
  (void)round.OnTrailer(1, *trailer);
  if (trailer->state) {
    const StateDict shape = {{.name = "model.w"}, {.name = "python.json"}};
    const StateDigest own{.tensors = {1, 2}, .text = R"({"lr":0.5,"a":[1,{"b":2}]})"};
    (void)MismatchOf(shape, own, *trailer->state);
    (void)MismatchOf(shape, *trailer->state, own);
  }
  (void)round.OnBuffers(2, {});
  (void)round.done();
}

// Reads frames one after another: bucket, node, piece and payload length, one byte each.
void RunState(std::span<const std::byte> bytes) {
  std::array<float, 4> a{};
  std::array<std::uint8_t, 3> b{};
  const StateDict shape = {
      {.name = "a", .shape = {4}, .bytes = std::as_writable_bytes(std::span(a))},
      {.name = "b",
       .dtype = DType::kUInt8,
       .shape = {3},
       .bytes = std::as_writable_bytes(std::span(b))}};
  StateReceiver receiver(shape);
  while (bytes.size() >= 4) {
    const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
    const std::size_t size = std::min<std::size_t>(at(3), bytes.size() - 4);
    Frame frame{.header = {.kind = FrameKind::kState,
                           .tick = 5,
                           .bucket = at(0),
                           .node = at(1),
                           .piece = at(2)},
                .payload = {.view = bytes.subspan(4, size)}};
    bytes = bytes.subspan(4 + size);
    if (!receiver.OnFrame(frame) || receiver.done()) return;
  }
}

}  // namespace

std::vector<std::string> fuzz::Seeds() {
  const LearnerId id{.name = "a", .pod_uid = "u", .nonce = 5};
  const FrameHead head = EncodeFrameHead({.header = {.kind = FrameKind::kNode,
                                                     .membership = {2, 9},
                                                     .tick = 77,
                                                     .bucket = 3,
                                                     .node = 12,
                                                     .piece = 4},
                                          .payload_bytes = 4096,
                                          .payload_crc = 0xdeadbeef});
  const Bytes holding = EncodeStateSummary(
      {.position = {.has_state = true, .applied_ticks = 4, .last_line = "{\"tick\":3}"},
       .current = true,
       .finished = {3, 9}});
  const Bytes trailer = EncodeTrailer(
      {.shards = {{.shard = 3, .sums = {1, 2, 3}}, {.shard = 4, .sums = {4, 5, 6}}},
       .announced = Membership{.id = {2, 6}, .members = {{.id = id, .address = "h:1"}}}});
  const Bytes with_state = EncodeTrailer(
      {.state = StateDigest{
           .runtime = 1, .tensors = {1, 3}, .text = R"({"lr":0.25,"a":[1,{"b":2,"c":null}]})"}});
  std::vector<std::string> seeds = {Seed(kHead, head),
                                    Seed(kHello, EncodeHello({.from = id, .to = id})),
                                    Seed(kStateSummary, holding.view), Seed(kTrailer, trailer.view),
                                    Seed(kTrailer, with_state.view)};
  std::string state(1, kState);
  const std::array<float, 4> a{1, 2, 3, 4};
  state += std::string({0, 1, 0, 16}) + TextOf(std::as_bytes(std::span(a)));
  state += std::string({1, 0, 0, 3}) + "xyz" + std::string({2, 0, 0, 0});
  seeds.push_back(std::move(state));
  return seeds;
}

}  // namespace pliant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pliant;
  if (size == 0) return 0;
  const auto bytes = fuzz::BytesOf(data, size).subspan(1);
  switch (data[0] % kKinds) {
    case kHead:
      RunHead(bytes);
      break;
    case kHello:
      if (const auto hello = DecodeHello(bytes)) {
        const auto again = DecodeHello(EncodeHello(*hello));
        CHECK(again && *again == *hello, "what was read can be written and read");
      }
      break;
    case kStateSummary:
      RunHolding(bytes);
      break;
    case kTrailer:
      RunTrailer(bytes);
      break;
    default:
      RunState(bytes);
  }
  return 0;
}
