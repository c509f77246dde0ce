#include "operator/kube/exec_credentials.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace pliant::kube {
namespace {

// Before it expires, so that no request carries what runs out on its way.
constexpr auto kRenewBefore = std::chrono::minutes(1);

}  // namespace

Result<Credential> ExecCredentials::Get(Clock::time_point now, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool tried_just_now = began_ && now - *began_ < kPauseLeast;
  if ((!Usable() || RenewalDue()) && !running_ && !tried_just_now) StartRun(now);
  if (!Usable() && !WaitForRun(lock, stop)) return Fail(ErrorCode::kCancelled, "stopped");
  if (!Usable()) {
    return std::unexpected(failure_.value_or(
        Error{ErrorCode::kDenied, "the credential plugin '" + plugin_.command.program +
                                      "' gives credentials that have expired"}));
  }
  return Credential{.token = credential_->token.empty()
                                 ? std::nullopt
                                 : std::optional<std::string>(credential_->token),
                    .serial = serial_};
}

bool ExecCredentials::RenewAfterRefusal(const Credential& refused, Clock::time_point now,
                                        const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (serial_ != refused.serial) return true;  // another caller was refused before
  const bool tried_just_now = began_ && now - *began_ < kPauseLeast;
  if (!running_ && tried_just_now) return false;
  if (!running_) StartRun(now);
  return WaitForRun(lock, stop) && serial_ != refused.serial;
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
    failure_.reset();
    renew_at_.reset();
    if (const auto expires = credential_->expires) {
      const auto left = std::max(*expires - wall_clock_(), WallClock::duration::zero());
      renew_at_ = *expires - std::min<WallClock::duration>(kRenewBefore, left / 10);
    }
  } else if (answer.error().code != ErrorCode::kCancelled) {
    if (Usable() && (!failure_ || *failure_ != answer.error())) {
      log::Warning("credentials not renewed; those in use are good for a while",
                   {{"error", answer.error().message}});
    }
    failure_ = std::move(answer).error();
  }
  running_ = false;
  ran_.notify_all();
}

bool ExecCredentials::WaitForRun(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  return ran_.wait(lock, stop, [this] { return !running_; });
}

}  // namespace pliant::kube
