#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kube/credential_source.h"

namespace pliant::kube {

// A bearer token that stands in the configuration or in a file. The file is read anew once a
// minute, because the kubelet replaces it long before the token ends.
class TokenSource final : public CredentialSource {
 public:
  // Neither given: there is no token (client certificates do the work).
  TokenSource(std::string token, std::string file)
      : token_(std::move(token)), file_(std::move(file)) {}

  // No token if there is none. A file that cannot be read any more leaves the last one in use.
  Result<Credential> Get(Clock::time_point now, const Patience& patience = {}) override;
  // Reads the file.
  bool RenewAfterRefusal(const Credential& refused, Clock::time_point now,
                         const Patience& patience = {}) override;

 private:
  static constexpr Clock::duration kRereadAfter = std::chrono::minutes(1);

  std::mutex mutex_;
  std::string token_;  // guarded by mutex_
  const std::string file_;
  std::optional<Clock::time_point> read_at_;  // guarded by mutex_
};

}  // namespace pliant::kube
