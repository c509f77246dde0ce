#include "operator/kube/event_series.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pliant::kube {
namespace {

// With thousands of notes per second and thousands of series, a scan for each note would use all of
// the thread's time.
constexpr std::chrono::seconds kFlushEvery{1};

}  // namespace

EventSeries::Decision EventSeries::OnNote(const EventNote& note, TimePoint now) {
  const Key key{.object_uid = note.regarding.meta.uid,
                .reason = note.reason,
                .action = note.action,
                .note = note.note,
                .type = note.type};
  const auto known = series_.find(key);
  if (known != series_.end() && now - known->second.last_note < options_.series_end) {
    Series& series = known->second;
    ++series.count;
    series.last_note = now;
    // The second note makes it a series: write that at once.
    if (series.count == 2 || now - series.last_write >= options_.write_every) {
      return WriteCount(series, now);
    }
    return {};
  }
  if (!MayCreate(key.object_uid, now)) return {.action = Action::kDrop};
  if (known == series_.end()) MakeRoom();
  const Series begun{.id = next_id_++, .note = note, .last_note = now, .last_write = now};
  series_.insert_or_assign(key, begun);
  return {.action = Action::kCreate, .id = begun.id, .note = note};
}

std::vector<EventSeries::Decision> EventSeries::Flush(TimePoint now) {
  std::vector<Decision> due;
  if (flushed_ && now - *flushed_ < kFlushEvery) return due;
  flushed_ = now;
  for (auto& [key, series] : series_) {
    const bool ended = now - series.last_note >= options_.series_end;
    const bool unwritten = series.count > series.count_written;
    if (unwritten && (ended || now - series.last_write >= options_.write_every)) {
      due.push_back(WriteCount(series, now));
    }
  }
  std::erase_if(series_, [&](const auto& entry) {
    return now - entry.second.last_note >= options_.series_end;
  });
  return due;
}

EventSeries::Decision EventSeries::WriteCount(Series& series, TimePoint now) {
  series.count_written = series.count;
  series.last_write = now;
  return {
      .action = Action::kUpdateSeries, .id = series.id, .note = series.note, .count = series.count};
}

bool EventSeries::MayCreate(const std::string& object_uid, TimePoint now) {
  auto limit = limits_.find(object_uid);
  if (limit == limits_.end()) {
    auto older = older_limits_.extract(object_uid);
    if (limits_.size() >= options_.max_objects / 2) older_limits_ = std::exchange(limits_, {});
    limit = older ? limits_.insert(std::move(older)).position
                  : limits_
                        .try_emplace(object_uid, options_.events_per_second_per_object,
                                     options_.burst_per_object)
                        .first;
  }
  return limit->second.TryTake(now);
}

void EventSeries::MakeRoom() {
  if (series_.size() < options_.max_series) return;
  const auto quietest = std::ranges::min_element(
      series_, {}, [](const auto& entry) { return entry.second.last_note; });
  series_.erase(quietest);
}

}  // namespace pliant::kube
