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
  Duration min_watch = std::chrono::minutes(5);
  Duration max_watch = std::chrono::minutes(10);
  // Bookmarks come about once a minute; a connection that is silent for this long is dead. What is
  // known may be this old, and counts as current all the same.
  Duration watch_idle = std::chrono::seconds(75);
  // The longest silence within a streamed list.
  Duration list_idle = std::chrono::seconds(30);
  BackoffOptions backoff;
  // Without an error for this long, the next delay is the first one again.
  Duration backoff_reset = std::chrono::minutes(2);
  // A watch that ends sooner, having told nothing, counts as an error: else it would be opened
  // again in a hot loop.
  Duration watch_too_short = std::chrono::seconds(1);
  // Refusals count when there was nothing else for this long: a server that has just begun may know
  // no rights yet.
  Duration min_refused = std::chrono::seconds(10);
};

// What a reflector does next, decided from how the last step ended. Pure: time and randomness are
// arguments.
class ReflectorPolicy {
 public:
  // A list comes in pages, or as a stream that tells of one object after the other.
  enum class Action { kList, kStreamList, kWatch };
  struct Step {
    Action action = Action::kList;
    Duration wait{};               // before the action
    std::string resource_version;  // kWatch: from where
    Duration watch_timeout{};      // kWatch
    // Why this is not what normally comes next ("Gone", "TooShort"); empty if it is.
    std::string restart_reason;

    bool operator==(const Step&) const = default;
  };

  // `stream_lists`: until the server shows that it does not know how to.
  ReflectorPolicy(ReflectorTiming timing, bool stream_lists)
      : timing_(timing), streams_lists_(stream_lists), backoff_(timing.backoff) {}

  // `random` in [0, 1), here and below.
  Step Start() const { return {.action = NextList()}; }
  Step AfterList(const std::string& resource_version, double random);
  Step AfterListError(const KubeError& error, TimePoint now, double random);
  // A streamed list did not come to its end. No error: the server took the request for that of a
  // watch.
  Step AfterStreamedListError(const std::optional<KubeError>& error, TimePoint now, double random);
  bool streams_lists() const { return streams_lists_; }

  // A watch told of an object or a bookmark at `resource_version`.
  void OnEvent(std::string_view resource_version);
  // `error`: nothing if the server ended the watch in order.
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
