#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "operator/kube/kube_error.h"

namespace pliant::kube {

struct ReflectorTiming {
  // A random time between the two, so that the watches of many clients do not end together.
  Duration watch_least = std::chrono::minutes(5);
  Duration watch_most = std::chrono::minutes(10);
  // Bookmarks come about once a minute; a connection that is silent for this long is dead.
  Duration watch_idle = std::chrono::seconds(150);
  BackoffOptions backoff;
  // Without an error for this long, the next delay is the first one again.
  Duration backoff_reset = std::chrono::minutes(2);
  // A watch that ends sooner, having told nothing, counts as an error: else it would be opened
  // again in a hot loop.
  Duration watch_too_short = std::chrono::seconds(1);
};

// What a reflector does next, decided from how the last step ended. Pure: time and randomness are
// arguments.
class ReflectorPolicy {
 public:
  enum class Action { kList, kWatch };
  struct Step {
    Action action = Action::kList;
    Duration wait{};               // before the action
    std::string resource_version;  // kWatch: from where
    Duration watch_timeout{};      // kWatch
    // Why this is not what normally comes next ("Gone", "TooShort"); empty if it is.
    std::string restart_reason;

    bool operator==(const Step&) const = default;
  };

  explicit ReflectorPolicy(ReflectorTiming timing) : timing_(timing), backoff_(timing.backoff) {}

  // `random` in [0, 1), here and below.
  Step Start() const { return {.action = Action::kList}; }
  Step AfterList(const std::string& resource_version, double random);
  Step AfterListError(const KubeError& error, TimePoint now, double random);

  // A watch told of an object or a bookmark at `resource_version`.
  void OnEvent(std::string_view resource_version);
  // `error`: nothing if the server ended the watch in order.
  Step AfterWatch(const std::optional<KubeError>& error, TimePoint began, TimePoint now,
                  double random);

 private:
  Step Watch(double random);
  bool FailedLately(TimePoint now) const;
  Duration Delay(const KubeError& error, TimePoint now, double random);

  const ReflectorTiming timing_;
  Backoff backoff_;
  std::optional<TimePoint> last_error_;
  std::string resource_version_;
  bool told_something_ = false;  // in this watch
};

}  // namespace pliant::kube
