#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

namespace pliant::kube {

// A bearer token from the configuration or from a file. The file is read again once a minute,
// because the kubelet replaces it long before the token expires. Any thread.
class TokenSource {
 public:
  using Clock = std::chrono::steady_clock;

  // If both are empty there is no token (client certificates are used).
  TokenSource(std::string token, std::string file)
      : token_(std::move(token)), file_(std::move(file)) {}

  // "" if there is none. If the file can no longer be read, the last token stays in use;
  // kUnavailable if there was none.
  Result<std::string> Get(Clock::time_point now);
  // The server rejected the token `refused`: reads the file again. Returns whether it now holds
  // another token, so that a retry makes sense.
  bool RenewAfterRefusal(const std::string& refused, Clock::time_point now);

 private:
  static constexpr Clock::duration kRereadAfter = std::chrono::minutes(1);

  std::mutex mutex_;
  std::string token_;  // guarded by mutex_
  const std::string file_;
  std::optional<Clock::time_point> read_at_;  // guarded by mutex_
};

}  // namespace pliant::kube
