#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "operator/kube/kube_error.h"

namespace pliant::kube {

struct ReflectorTiming {
  // A watch lasts a random time between the two, so that the watches of many clients do not end
  // together.
  Duration min_watch = std::chrono::minutes(5);
  Duration max_watch = std::chrono::minutes(10);
  // Bookmarks come about once a minute; a connection that is silent for this long counts as dead.
  // Until then the store counts as current, although its objects may be this old.
  Duration watch_idle = std::chrono::seconds(75);
  // The longest silence within a streamed list.
  Duration list_idle = std::chrono::seconds(30);
  BackoffOptions backoff;
  // After this long without an error, the back-off starts again at its first delay.
  Duration backoff_reset = std::chrono::minutes(2);
  // A watch that ends sooner without an event counts as an error: otherwise it would be reopened in
  // a hot loop.
  Duration watch_too_short = std::chrono::seconds(1);
  // Refusals (403) are reported after this long without another answer: a server that has just
  // started may not have loaded its permissions yet.
  Duration min_refused = std::chrono::seconds(10);
  // An optional kind that the server had before counts as removed after this long.
  Duration min_missing = std::chrono::minutes(5);
};

// Decides a reflector's next step from how the last one ended. Pure: time and randomness are
// arguments.
class ReflectorPolicy {
 public:
  // A list comes in pages, or as a stream of one object after the other.
  enum class Action { kList, kStreamList, kWatch };
  struct Step {
    Action action = Action::kList;
    Duration wait{};               // before the action
    std::string resource_version;  // kWatch: the version to start from
    Duration watch_timeout{};      // kWatch
    // Why this is not the normal next step ("Gone", "TooShort"); empty if it is.
    std::string restart_reason;

    bool operator==(const Step&) const = default;
  };

  // `stream_lists`: stream lists until the server shows that it does not support it.
  ReflectorPolicy(ReflectorTiming timing, bool stream_lists)
      : timing_(timing), streams_lists_(stream_lists), backoff_(timing.backoff) {}

  // `random` in [0, 1), here and below.
  Step Start() const { return {.action = NextList()}; }
  Step AfterList(const std::string& resource_version, double random);
  Step AfterListError(const KubeError& error, TimePoint now, double random);
  // A streamed list did not complete. No error: the server treated the request as a plain watch.
  Step AfterStreamedListError(const std::optional<KubeError>& error, TimePoint now, double random);
  bool streams_lists() const { return streams_lists_; }

  // A watch received an object or a bookmark at `resource_version`.
  void OnEvent(std::string_view resource_version);
  // `error`: nullopt if the server ended the watch normally.
  Step AfterWatch(const std::optional<KubeError>& error, TimePoint began, TimePoint now,
                  double random);

 private:
  Action NextList() const { return streams_lists_ ? Action::kStreamList : Action::kList; }
  Step Watch(double random);
  bool FailedLately(TimePoint now) const;
  Duration Delay(const KubeError& error, TimePoint now, double random);

  const ReflectorTiming timing_;
  bool streams_lists_;
  Backoff backoff_;
  std::optional<TimePoint> last_error_;
  std::string resource_version_;
  bool received_something_ = false;  // in this watch
};

}  // namespace pliant::kube
