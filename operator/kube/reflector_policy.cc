#include "operator/kube/reflector_policy.h"

#include <algorithm>

namespace pliant::kube {
namespace {

// Whether a watch may continue at its resource version after this error. All other errors need a
// new list: the version is too old, or too new (after a restore of the server's data), or the
// answer was not valid.
bool MayContinue(const KubeError& error) {
  if (error.code == ErrorCode::kThrottled || error.code == ErrorCode::kUnavailable) return true;
  return error.http_status == 0 &&
         (error.code == ErrorCode::kTimeout || error.code == ErrorCode::kCancelled);
}

}  // namespace

ReflectorPolicy::Step ReflectorPolicy::AfterList(const std::string& resource_version,
                                                 double random) {
  resource_version_ = resource_version;
  return Watch(random);
}

ReflectorPolicy::Step ReflectorPolicy::AfterListError(const KubeError& error, TimePoint now,
                                                      double random) {
  return {.action = Action::kList,
          .wait = Delay(error, now, random),
          .restart_reason = std::string(ToString(error.code))};
}

ReflectorPolicy::Step ReflectorPolicy::AfterStreamedListError(const std::optional<KubeError>& error,
                                                              TimePoint now, double random) {
  const bool refused = !error || (error->code == ErrorCode::kInvalid && error->http_status != 0);
  if (refused) {
    streams_lists_ = false;
    return {.action = Action::kList};
  }
  // Whatever the error was, try pages next: completing the list matters more than streaming it.
  return AfterListError(*error, now, random);
}

void ReflectorPolicy::OnEvent(std::string_view resource_version) {
  received_something_ = true;
  if (!resource_version.empty()) resource_version_ = resource_version;
}

ReflectorPolicy::Step ReflectorPolicy::AfterWatch(const std::optional<KubeError>& error,
                                                  TimePoint began, TimePoint now, double random) {
  if (!error) {
    if (received_something_ || now - began >= timing_.watch_too_short) return Watch(random);
    Step step = Watch(random);
    step.wait = Delay(KubeError(ErrorCode::kUnavailable, ""), now, random);
    step.restart_reason = "TooShort";
    return step;
  }
  if (MayContinue(*error)) {
    Step step = Watch(random);
    step.wait = Delay(*error, now, random);
    step.restart_reason = std::string(ToString(error->code));
    return step;
  }
  // A first "resource version too old" is normal: list again without a delay.
  const bool at_once = error->code == ErrorCode::kGone && !FailedLately(now);
  const Duration delay = Delay(*error, now, random);
  return {.action = NextList(),
          .wait = at_once ? Duration::zero() : delay,
          .restart_reason = std::string(ToString(error->code))};
}

ReflectorPolicy::Step ReflectorPolicy::Watch(double random) {
  received_something_ = false;
  const Duration spread = timing_.max_watch - timing_.min_watch;
  return {
      .action = Action::kWatch,
      .resource_version = resource_version_,
      .watch_timeout = timing_.min_watch + std::chrono::duration_cast<Duration>(spread * random)};
}

bool ReflectorPolicy::FailedLately(TimePoint now) const {
  return last_error_ && now - *last_error_ < timing_.backoff_reset;
}

Duration ReflectorPolicy::Delay(const KubeError& error, TimePoint now, double random) {
  if (!FailedLately(now)) backoff_.Reset();
  last_error_ = now;
  return std::max(backoff_.Next(random), error.retry_after.value_or(Duration::zero()));
}

}  // namespace pliant::kube
