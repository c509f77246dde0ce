#include "operator/controller/actions/retry_state.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pliant::controller {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr BackoffOptions kFailureBackoff{
    .first = seconds(1), .most = minutes(1), .factor = 2, .jitter = 0};
constexpr BackoffOptions kRefusalBackoff{
    .first = seconds(5), .most = minutes(5), .factor = 2, .jitter = 0};

// The delay before the next try. The server may ask for more than is usual, but not for hours: its
// Retry-After may come from an admission webhook.
Duration DelayAfter(const kube::KubeError& error, Backoff& backoff) {
  const Duration asked = error.retry_after.value_or(Duration::zero());
  return std::max(backoff.Next(0), std::min(asked, kRefusalBackoff.most));
}

NextStep Rest(Duration delay, bool log_error, api::WallTime now, RetryState& retry) {
  retry.not_before = now + std::chrono::ceil<std::chrono::milliseconds>(delay);
  return {.kind = NextStep::Kind::kRest, .delay = delay, .log_error = log_error};
}

}  // namespace

RetryState::RetryState(Duration first_conflict_delay)
    : failures(kFailureBackoff),
      conflicts({.first = first_conflict_delay, .most = minutes(1), .factor = 2, .jitter = 0}) {}

NextStep StepAfter(const BatchResult& result, bool unanswered_before, api::WallTime now,
                   RetryState& retry) {
  if (IsAllDone(result, unanswered_before)) {
    retry.failures = Backoff(kFailureBackoff);
    retry.conflicts.Reset();
    retry.not_before = {};
    retry.last_error.clear();
    return {};
  }
  if (!result.error) return Rest(retry.failures.Next(0), /*log_error=*/false, now, retry);
  const kube::KubeError& error = *result.error;
  const auto is_news = [&] {
    return std::exchange(retry.last_error, error.message) != error.message;
  };
  if (result.outcome_unknown) {
    const bool news = is_news();
    return {.kind = NextStep::Kind::kResolve,
            .delay = DelayAfter(error, retry.failures),
            .log_error = news};
  }
  if (error.code == ErrorCode::kConflict || error.code == ErrorCode::kNotFound) {
    // The delay grows: if the object in the watch cannot be understood, the conflict will not end.
    return {.kind = NextStep::Kind::kLookLater, .delay = retry.conflicts.Next(0)};
  }
  if (error.code == ErrorCode::kCancelled) return {.kind = NextStep::Kind::kNothing};
  const bool news = is_news();
  const bool rested = retry.not_before != api::WallTime{};
  if (kube::IsRefusal(error) && !rested && !result.lacks_quota)
    retry.failures = Backoff(kRefusalBackoff);
  return Rest(DelayAfter(error, retry.failures), news, now, retry);
}

}  // namespace pliant::controller
