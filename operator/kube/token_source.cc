#include "operator/kube/token_source.h"

#include "base/file.h"

namespace pliant::kube {
namespace {

// Errors are always kUnavailable: a code such as kNotFound would look like an answer of the server.
Result<std::string> ReadToken(const std::string& path) {
  Result<std::string> read = ReadFile(path);
  if (!read) return Fail(ErrorCode::kUnavailable, "no token: " + read.error().message);
  std::string token = *std::move(read);
  token.erase(token.find_last_not_of(" \r\n\t") + 1);
  // A line end inside the token would end the header that carries it.
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos) {
    return Fail(ErrorCode::kUnavailable, "no token in " + path);
  }
  return token;
}

}  // namespace

Result<std::string> TokenSource::Get(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!file_.empty() && (!read_at_ || now - *read_at_ >= kRereadAfter)) {
    Result<std::string> read = ReadToken(file_);
    if (read) token_ = *std::move(read);
    if (!read && token_.empty()) return std::unexpected(std::move(read).error());
    read_at_ = now;
  }
  return token_;
}

bool TokenSource::RenewAfterRefusal(const std::string& refused, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return false;
  if (Result<std::string> read = ReadToken(file_)) token_ = *std::move(read);
  read_at_ = now;
  return token_ != refused;
}

}  // namespace pliant::kube
