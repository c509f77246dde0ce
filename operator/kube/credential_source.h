#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"

namespace pliant::kube {

// What goes with one request.
struct Credential {
  std::optional<std::string> token;  // nothing: the client's certificate does the work
  std::uint64_t serial = 0;          // another one has another
};

// How long a caller waits.
struct Patience {
  Duration most = std::chrono::minutes(1);
  std::stop_token stop;
};

// Where the credentials of requests come from. Any thread.
class CredentialSource {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~CredentialSource() = default;

  // May block, for as long as there is nothing that could be used meanwhile. kUnavailable: there is
  // none, or not yet.
  virtual Result<Credential> Get(Clock::time_point now, const Patience& patience = {}) = 0;

  // The server refused `refused`. Whether there is another one now, so that a second try makes
  // sense.
  virtual bool RenewAfterRefusal(const Credential& refused, Clock::time_point now,
                                 const Patience& patience = {}) = 0;
};

}  // namespace pliant::kube
