#include "trainer/checkpoint/volume_error.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/format.h"

namespace pliant {
namespace {

// No space on the volume, in the user's quota, or for a file of this size.
constexpr int kFull[] = {ENOSPC, EDQUOT, EFBIG};

std::string Words(int system_error) { return std::generic_category().message(system_error); }

ErrorCode CodeOf(int system_error) {
  switch (system_error) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kDenied;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

Error VolumeError(std::string_view doing, int system_error) {
  return {.code = CodeOf(system_error), .message = Format("{}: {}", doing, Words(system_error))};
}

// A full volume is retried later like other errors, so it has no error code of its own; the
// system's message identifies it.
std::string_view WriteProblemOf(const Error& error) {
  if (error.code == ErrorCode::kDenied) return "VolumeReadOnly";
  const bool full = std::ranges::any_of(
      kFull, [&](int system_error) { return error.message.ends_with(": " + Words(system_error)); });
  return full ? "VolumeFull" : "WriteFailed";
}

}  // namespace pliant
