#include "base/result.h"

namespace pliant {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "Invalid";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kGone:
      return "Gone";
    case ErrorCode::kDenied:
      return "Denied";
    case ErrorCode::kThrottled:
      return "Throttled";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kTimeout:
      return "Timeout";
    case ErrorCode::kCancelled:
      return "Cancelled";
    case ErrorCode::kCorrupt:
      return "Corrupt";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << ToString(error.code) << ": " << error.message;
}

}  // namespace pliant
