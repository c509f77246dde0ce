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

// What an event is about.
struct EventSubject {
  ResourceType type;
  ObjectMeta meta;
};

// Something worth telling the owner of an object, as `kubectl describe` shows it.
struct EventNote {
  EventSubject regarding;
  EventType type = EventType::kNormal;
  std::string reason;  // CamelCase, of a fixed set: "Resized"
  std::string action;  // what was being done: "Plan"
  std::string note;    // a sentence; cut at 1 KiB
};

// When a note becomes a new event, when it only counts up an earlier one, and when it is dropped.
// Pure: time is an argument.
class EventSeries {
 public:
  struct Options {
    Duration series_end = std::chrono::minutes(6);    // without a repetition: the next begins anew
    Duration write_every = std::chrono::minutes(1);   // a series' count is written at most so often
    double events_per_second_per_object = 1.0 / 300;  // new events of one object, after a burst
    int burst_per_object = 25;
    std::size_t series_max = 1000;  // followed at a time; the one quiet for longest goes first
    // Whose rates are followed at a time, about: between half as many and all of those that had
    // events last. Where more than that have events in turn, each has its burst again, and the
    // client's limit of requests is what holds.
    std::size_t objects_max = 2000;
  };
  enum class Action { kNothing, kCreate, kUpdateSeries, kDrop };
  struct Decision {
    Action action = Action::kNothing;
    std::uint64_t id = 0;  // of the event: unlike any other's
    EventNote note;
    int count = 1;  // kUpdateSeries: so many notes in all, at least two
  };

  // `first_id`: larger than those of earlier processes.
  EventSeries(Options options, std::uint64_t first_id) : options_(options), next_id_(first_id) {}

  Decision OnNote(const EventNote& note, TimePoint now);
  // Counts that have not been written for long enough. Forgets series that have ended. Asked again
  // within a second it has nothing.
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
  std::optional<TimePoint> flushed_;  // last
  // Of objects, by uid. When there are enough of them in the first, it becomes the second, and the
  // second is forgotten: whoever goes on to have events is found in time.
  std::map<std::string, TokenBucket> limits_;
  std::map<std::string, TokenBucket> older_limits_;
};

}  // namespace pliant::kube
