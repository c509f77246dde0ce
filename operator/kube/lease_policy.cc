#include "operator/kube/lease_policy.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sstream>

namespace pliant::kube {
namespace {

int WholeSeconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

// The number of a first lease: seconds since 2020. A lease that was deleted comes again with a
// number above all that it had, since leaders change more rarely than every second: coordinators
// refuse plans under a lower one than they have seen. It fits until 2088.
int FirstTransitions(const std::string& wall_time) {
  std::istringstream text(wall_time);
  std::chrono::sys_seconds now;
  text >> std::chrono::parse("%FT%T", now);
  constexpr std::chrono::sys_seconds kBegin =
      std::chrono::sys_days{std::chrono::year{2020} / std::chrono::January / 1};
  const auto seconds = text.fail() ? 0 : (now - kBegin).count();
  return static_cast<int>(std::clamp<std::int64_t>(seconds, 0, INT32_MAX));
}

}  // namespace

Status LeaseTiming::Validate() const {
  if (retry <= Duration::zero() || retry_jitter < 0) {
    return Invalid("the lease's retry time has to be positive");
  }
  if (renew_deadline <= 2 * retry) {
    return Invalid("the lease's renew deadline has to be longer than two of its retry times");
  }
  if (lease < renew_deadline + std::chrono::seconds(1)) {
    return Invalid("the lease has to be a second longer than its renew deadline");
  }
  return {};
}

LeasePolicy::Step LeasePolicy::NextStep(const std::string& wall_time, double random) {
  switch (next_) {
    case Next::kRead:
      return {.action = Action::kRead};
    case Next::kReadLater: {
      next_ = Next::kRead;
      // A standby sees a renewal at most one retry late, so it takes over within lease + retry.
      auto wait = std::chrono::duration_cast<Duration>(timing_.retry /
                                                       (1.0 + timing_.retry_jitter * random));
      if (expires_in_) wait = std::min(wait, *expires_in_);
      return {.action = Action::kWait, .record = {}, .wait = wait};
    }
    case Next::kRenewLater:
      next_ = Next::kRenew;
      return {.action = Action::kWait, .record = {}, .wait = timing_.retry};
    case Next::kTake:
    case Next::kRenew:
      break;
  }
  writing_ = OwnRecord(wall_time);
  return {.action = seen_ ? Action::kReplace : Action::kCreate, .record = writing_, .wait = {}};
}

void LeasePolicy::OnRead(const std::optional<LeaseRecord>& seen, TimePoint now) {
  if (seen != seen_) {
    seen_ = seen;
    changed_at_ = now;
  }
  if (seen_) transitions_ = std::max(seen_->transitions, transitions_.value_or(0));
  expires_in_.reset();
  next_ = Next::kTake;
  if (!seen_ || seen_->holder.empty() || seen_->holder == identity_) return;
  leads_until_ = TimePoint::min();  // if this replica led, others have declared it dead
  const Duration lease =
      seen_->duration_seconds > 0 ? std::chrono::seconds(seen_->duration_seconds) : timing_.lease;
  if (changed_at_ + lease <= now) return;
  expires_in_ = changed_at_ + lease - now;
  next_ = Next::kReadLater;
}

void LeasePolicy::OnReadFailed() {
  expires_in_.reset();
  next_ = Next::kReadLater;
}

void LeasePolicy::OnWritten(bool success, TimePoint began, TimePoint now) {
  if (!success) {
    expires_in_.reset();
    next_ = Next::kReadLater;
    return;
  }
  seen_ = writing_;
  transitions_ = writing_.transitions;
  changed_at_ = now;
  next_ = Next::kRenewLater;
  if (Lost(now)) return;  // too late: something may already have acted on the loss
  leads_until_ = began + timing_.renew_deadline;
  has_led_ = has_led_ || Leads(now);
}

std::optional<LeaseRecord> LeasePolicy::Release(TimePoint now, const std::string& wall_time) {
  const bool led = Leads(now);
  leads_until_ = TimePoint::min();
  if (!led) return std::nullopt;
  LeaseRecord released = *seen_;
  released.holder.clear();
  released.duration_seconds = 1;
  released.acquire_time = wall_time;
  released.renew_time = wall_time;
  return released;
}

LeaseRecord LeasePolicy::OwnRecord(const std::string& wall_time) const {
  LeaseRecord record{.holder = identity_,
                     .duration_seconds = WholeSeconds(timing_.lease),
                     .transitions = transitions_ ? *transitions_ + 1 : FirstTransitions(wall_time),
                     .acquire_time = wall_time,
                     .renew_time = wall_time};
  if (!seen_) return record;
  if (seen_->holder != identity_) return record;
  record.transitions = *transitions_;
  record.acquire_time = seen_->acquire_time;
  return record;
}

}  // namespace pliant::kube
