#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace pliant::simulator {

// Events in the order of their times, those of the same time in the order in which they were added.
template <typename Event>
class EventQueue {
 public:
  void Add(std::int64_t at, Event event) {
    events_.push({.at = at, .number = next_++, .event = std::move(event)});
  }
  bool empty() const { return events_.empty(); }
  std::int64_t next_time() const { return events_.top().at; }
  Event Take() {
    Event event = events_.top().event;
    events_.pop();
    return event;
  }

 private:
  struct Entry {
    std::int64_t at = 0;
    std::uint64_t number = 0;
    Event event;
    bool operator<(const Entry& other) const {  // the greatest is on top
      return std::tie(other.at, other.number) < std::tie(at, number);
    }
  };
  std::priority_queue<Entry> events_;
  std::uint64_t next_ = 0;
};

}  // namespace pliant::simulator
