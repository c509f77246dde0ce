#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

namespace pliant::kube {

// A bearer token that stands in the configuration or in a file. The file is read again once a
// minute, because the kubelet replaces it long before the token ends. Any thread.
class TokenSource {
 public:
  using Clock = std::chrono::steady_clock;

  // Neither given: there is no token (client certificates do the work).
  TokenSource(std::string token, std::string file)
      : token_(std::move(token)), file_(std::move(file)) {}

  // "" if there is none. A file that cannot be read any more leaves the last one in use; without
  // one: kUnavailable.
  Result<std::string> Get(Clock::time_point now);
  // The server refused `refused`: reads the file. Whether there is another one now, so that a
  // second try makes sense.
  bool RenewAfterRefusal(const std::string& refused, Clock::time_point now);

 private:
  static constexpr Clock::duration kRereadAfter = std::chrono::minutes(1);

  std::mutex mutex_;
  std::string token_;  // guarded by mutex_
  const std::string file_;
  std::optional<Clock::time_point> read_at_;  // guarded by mutex_
};

}  // namespace pliant::kube
