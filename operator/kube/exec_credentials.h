#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "operator/kube/credential_source.h"
#include "operator/kube/exec_plugin.h"

namespace pliant::kube {

// The credentials that a plugin gives: asked for when they are first needed, before they expire,
// and when the server refuses them. The plugin runs once for all who wait, on a thread of its own;
// while the credential before is good for a while yet, nobody waits at all. It goes on when those
// who waited for it do so no longer.
class ExecCredentials final : public CredentialSource {
 public:
  using WallClock = std::chrono::system_clock;

  struct Identity {
    std::string certificate;  // PEM
    std::string key;
    std::uint64_t serial = 0;  // of the credential that it is part of
  };

  explicit ExecCredentials(ExecPlugin plugin,
                           std::function<WallClock::time_point()> wall_clock = WallClock::now)
      : plugin_(std::move(plugin)), wall_clock_(std::move(wall_clock)) {}

  Result<Credential> Get(Clock::time_point now, const Patience& patience = {}) override;
  bool RenewAfterRefusal(const Credential& refused, Clock::time_point now,
                         const Patience& patience = {}) override;

  // Of the last credential, if it had a certificate; never waits.
  std::optional<Identity> identity() const;

 private:
  // The plugin is not run more often, whatever its credentials and the server say.
  static constexpr Clock::duration kPauseLeast = std::chrono::seconds(5);

  bool Usable() const;
  bool RenewalDue() const;
  void StartRun(Clock::time_point now);
  void Run(const std::stop_token& stop);
  bool WaitForRun(std::unique_lock<std::mutex>& lock, const Patience& patience);

  const ExecPlugin plugin_;
  const std::function<WallClock::time_point()> wall_clock_;
  mutable std::mutex mutex_;
  std::condition_variable_any ran_;
  // All guarded by mutex_.
  std::optional<ExecCredential> credential_;
  std::uint64_t serial_ = 0;
  std::optional<WallClock::time_point> renew_at_;
  std::string failure_;                     // of the last run, as it was told; "" if there was none
  std::optional<Clock::time_point> began_;  // the last run
  bool running_ = false;
  std::jthread runner_;  // last: joined before the rest is destroyed
};

}  // namespace pliant::kube
