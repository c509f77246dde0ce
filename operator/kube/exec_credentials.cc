#include "operator/kube/exec_credentials.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace pliant::kube {
namespace {

// Before it expires, so that no request carries what runs out on its way.
constexpr auto kRenewBefore = std::chrono::minutes(1);

}  // namespace

Result<Credential> ExecCredentials::Get(Clock::time_point now, const Patience& patience) {
  std::unique_lock lock(mutex_);
  const bool tried_just_now = began_ && now - *began_ < kPauseLeast;
  if ((!Usable() || RenewalDue()) && !running_ && !tried_just_now) StartRun(now);
  if (!Usable() && !WaitForRun(lock, patience)) {
    if (patience.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    return Fail(ErrorCode::kUnavailable,
                "the credential plugin '" + plugin_.command.program + "' still runs");
  }
  if (!Usable()) {
    // What the plugin itself says is in the log only: an error may go on to users, who have nothing
    // to do with it.
    const std::string name = "the credential plugin '" + plugin_.command.program + "'";
    return Fail(ErrorCode::kUnavailable,
                failure_.empty() ? name + " gives credentials that have expired"
                                 : name + " gives no credential; the log of this process says why");
  }
  return Credential{.token = credential_->token.empty()
                                 ? std::nullopt
                                 : std::optional<std::string>(credential_->token),
                    .serial = serial_};
}

bool ExecCredentials::RenewAfterRefusal(const Credential& refused, Clock::time_point now,
                                        const Patience& patience) {
  std::unique_lock lock(mutex_);
  if (serial_ != refused.serial) return true;  // another caller was refused before
  const bool tried_just_now = began_ && now - *began_ < kPauseLeast;
  if (!running_ && tried_just_now) return false;
  if (!running_) StartRun(now);
  return WaitForRun(lock, patience) && serial_ != refused.serial;
}

std::optional<ExecCredentials::Identity> ExecCredentials::identity() const {
  const std::lock_guard lock(mutex_);
  if (!credential_ || credential_->client_certificate.empty()) return std::nullopt;
  return Identity{.certificate = credential_->client_certificate,
                  .key = credential_->client_key,
                  .serial = serial_};
}

bool ExecCredentials::Usable() const {
  return credential_ && (!credential_->expires || wall_clock_() < *credential_->expires);
}

bool ExecCredentials::RenewalDue() const { return renew_at_ && wall_clock_() >= *renew_at_; }

void ExecCredentials::StartRun(Clock::time_point now) {
  began_ = now;
  running_ = true;
  // The thread before has nothing left to do but to end.
  runner_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void ExecCredentials::Run(const std::stop_token& stop) {
  Result<ExecCredential> answer = RunExecPlugin(plugin_, stop);
  const std::lock_guard lock(mutex_);
  if (answer) {
    credential_ = *std::move(answer);
    ++serial_;
    failure_.clear();
    renew_at_.reset();
    if (const auto expires = credential_->expires) {
      const auto left = std::max(*expires - wall_clock_(), WallClock::duration::zero());
      renew_at_ = *expires - std::min<WallClock::duration>(kRenewBefore, left / 10);
    }
  } else if (answer.error().code != ErrorCode::kCancelled) {
    const std::string what = Usable() ? "credentials not renewed; those in use are good for a while"
                                      : "no credentials: nothing can be asked of the API server";
    const std::string& why = answer.error().message;
    if (failure_ != what + why) log::Warning(what, {{"error", why}});
    failure_ = what + why;
  }
  running_ = false;
  ran_.notify_all();
}

bool ExecCredentials::WaitForRun(std::unique_lock<std::mutex>& lock, const Patience& patience) {
  return ran_.wait_for(lock, patience.stop, patience.most, [this] { return !running_; });
}

}  // namespace pliant::kube
