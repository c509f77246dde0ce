#include "trainer/protocol/slice_failure.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/protocol/wire.h"

namespace pliant {
namespace {

constexpr std::size_t kMaxErrorBytes = 1024;  // kept of a peer's error

}  // namespace

Frame EncodeSliceFailure(MembershipId membership, const SliceFailure& failure) {
  return {.header = {.kind = FrameKind::kSliceFailed,
                     .membership = membership,
                     .tick = failure.tick,
                     .node = static_cast<std::uint32_t>(failure.error.code)},
          .payload = TextPayload(failure.error.message)};
}

SliceFailure DecodeSliceFailure(const Frame& frame) {
  std::string_view text = TextOfPayload(frame.payload);
  if (text.size() > kMaxErrorBytes) text.remove_prefix(text.size() - kMaxErrorBytes);
  const bool known = frame.header.node <= static_cast<std::uint32_t>(ErrorCode::kInternal);
  const ErrorCode code =
      known ? static_cast<ErrorCode>(frame.header.node) : ErrorCode::kUnavailable;
  return {.tick = frame.header.tick, .error = {code, std::string(text)}};
}

}  // namespace pliant
