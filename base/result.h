#pragma once

#include <expected>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace pliant {

// The caller's next move picks the code.
enum class ErrorCode {
  kInvalid,        // the input is wrong: report it to its owner, do not retry
  kNotFound,       // fine when deleting
  kAlreadyExists,  // read it: an earlier attempt may have created it
  kConflict,       // read again and decide again
  kGone,           // list again
  kDenied,         // credentials or rights: renew them, or notify the administrator
  kThrottled,      // wait as long as the server asked
  kUnavailable,    // back off and try again
  kTimeout,        // back off and try again; the request may have been carried out
  kCancelled,      // the caller asked for it
  kCorrupt,        // stored bytes do not verify: use the copy before them
  kInternal,       // a bug on one of the two sides
};

std::string_view ToString(ErrorCode code);

// A code for the program and a sentence for a person.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  bool operator==(const Error&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Error& error);

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}
inline std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalid, std::move(message));
}

// The same error with the failed operation in front: "read config: no such file".
inline Error InContext(std::string_view doing, Error error) {
  error.message.insert(0, std::string(doing) + ": ");
  return error;
}

}  // namespace pliant

#define PLIANT_CONCAT_INNER(a, b) a##b
#define PLIANT_CONCAT(a, b) PLIANT_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                         \
  do {                                                      \
    if (auto status_ = (expression); !status_) [[unlikely]] \
      return std::unexpected(std::move(status_).error());   \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_INNER(PLIANT_CONCAT(result_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result) [[unlikely]]                                     \
    return std::unexpected(std::move(result).error());          \
  declaration = *std::move(result)
