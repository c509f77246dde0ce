#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "operator/kube/object.h"
#include "operator/kube/token_bucket.h"

namespace pliant::kube {

enum class EventType { kNormal, kWarning };

// The object that an event is about.
struct EventSubject {
  ResourceType type;
  ObjectMeta meta;
};

// A message for the owner of an object, as `kubectl describe` shows it.
struct EventNote {
  EventSubject regarding;
  EventType type = EventType::kNormal;
  std::string reason;  // CamelCase, from a fixed set: "Resized"
  std::string action;  // what was being done: "Plan"
  std::string note;    // a sentence; truncated at 1 KiB
};

// Decides whether a note becomes a new event, increments the count of an earlier one, or is
// dropped. Pure: time is an argument.
class EventSeries {
 public:
  struct Options {
    // a series ends after this time without a repetition
    Duration series_end = std::chrono::minutes(6);
    // minimum time between two writes of a series' count
    Duration write_every = std::chrono::minutes(1);
    // rate of new events per object, after a burst
    double events_per_second_per_object = 1.0 / 300;
    int burst_per_object = 25;
    // maximum of series tracked; the one idle for longest is evicted first
    std::size_t max_series = 1000;
    // Approximate number of objects whose rates are tracked: between half of this and all of it,
    // most recent ones first. If more objects than this have events in turn, each gets its burst
    // again, and only the client's request limit applies.
    std::size_t max_objects = 2000;
  };
  enum class Action { kNothing, kCreate, kUpdateSeries, kDrop };
  struct Decision {
    Action action = Action::kNothing;
    std::uint64_t id = 0;  // unique id of the event
    EventNote note;
    int count = 1;  // kUpdateSeries: the number of notes so far, at least two
  };

  // `first_id`: larger than all ids of earlier processes.
  EventSeries(Options options, std::uint64_t first_id) : options_(options), next_id_(first_id) {}

  Decision OnNote(const EventNote& note, TimePoint now);
  // Returns the counts that are due to be written, and removes series that have ended. Returns
  // nothing if called again within one second.
  std::vector<Decision> Flush(TimePoint now);

 private:
  struct Key {
    std::string object_uid, reason, action, note;
    EventType type;
    auto operator<=>(const Key&) const = default;
  };
  struct Series {
    std::uint64_t id = 0;
    EventNote note;
    int count = 1;
    int count_written = 1;
    TimePoint last_note;
    TimePoint last_write;
  };

  static Decision WriteCount(Series& series, TimePoint now);
  bool MayCreate(const std::string& object_uid, TimePoint now);
  void MakeRoom();

  const Options options_;
  std::uint64_t next_id_;
  std::map<Key, Series> series_;
  std::optional<TimePoint> flushed_;  // the last Flush that was not skipped
  // Rate limits by object uid, in two generations. When `limits_` is full it becomes
  // `older_limits_`, and the old one is dropped. An object with further events moves back to
  // `limits_`.
  std::map<std::string, TokenBucket> limits_;
  std::map<std::string, TokenBucket> older_limits_;
};

}  // namespace pliant::kube
