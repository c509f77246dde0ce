#include "tests/fakes/cuda/race_detector.h"

#include <iterator>
#include <utility>

#include "base/format.h"

namespace pliant::fake_cuda {

void RaceDetector::SplitAt(std::uint64_t at) {
  auto after = segments_.upper_bound(at);
  if (after == segments_.begin()) return;
  const auto segment = std::prev(after);
  if (segment->first == at || segment->second.end <= at) return;
  segments_.emplace_hint(after, at, segment->second);
  segment->second.end = at;
}

std::optional<std::string> RaceDetector::Touch(const std::string& name, Point point,
                                               const VectorClock& after, const Access& access) {
  if (access.bytes == 0) return std::nullopt;
  SplitAt(access.begin);
  SplitAt(access.end());
  std::optional<std::string> race;
  const auto check = [&](const Toucher& earlier, const char* did) {
    const bool itself = earlier.point == point;  // an operation may read what it writes
    if (race || itself || after.Includes(earlier.point)) return;
    race = Format(
        "race: {} (operation {} of stream {}) {} memory that {} (operation {} of stream {}) {}, "
        "and no event or wait orders them",
        name, point.number, point.stream, access.writes ? "writes" : "reads", earlier.name,
        earlier.point.number, earlier.point.stream, did);
  };
  const auto touch = [&](Segment& segment) {
    if (segment.writer) check(*segment.writer, "writes");
    if (access.writes) {
      for (const Toucher& reader : segment.readers) check(reader, "reads");
      segment.writer = {.name = name, .point = point};
      segment.readers.clear();
    } else {
      // An operation that comes after this reader also comes after the readers before it.
      std::erase_if(segment.readers,
                    [&](const Toucher& reader) { return after.Includes(reader.point); });
      segment.readers.push_back({.name = name, .point = point});
    }
  };
  std::uint64_t at = access.begin;
  while (at < access.end()) {
    auto segment = segments_.lower_bound(at);
    if (segment == segments_.end() || segment->first > at) {
      const std::uint64_t end =
          segment == segments_.end() ? access.end() : std::min(access.end(), segment->first);
      segment = segments_.emplace_hint(segment, at, Segment{.end = end});
    }
    touch(segment->second);
    at = segment->second.end;
  }
  return race;
}

void RaceDetector::Forget(std::uint64_t begin, std::size_t bytes) {
  SplitAt(begin);
  SplitAt(begin + bytes);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(begin + bytes));
}

}  // namespace pliant::fake_cuda
