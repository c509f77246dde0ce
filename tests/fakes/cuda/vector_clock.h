#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pliant::fake_cuda {

using StreamId = std::size_t;

// The n-th operation of a stream, counted from 1.
struct Point {
  StreamId stream = 0;
  std::uint64_t number = 0;
  bool operator==(const Point&) const = default;
};

// The operations that happened before something: the first so many of each stream.
class VectorClock {
 public:
  bool Includes(Point point) const {
    return point.stream < counts_.size() && counts_[point.stream] >= point.number;
  }
  void Include(Point point) {
    if (point.stream >= counts_.size()) counts_.resize(point.stream + 1);
    counts_[point.stream] = std::max(counts_[point.stream], point.number);
  }
  void Join(const VectorClock& other) {
    for (StreamId stream = 0; stream < other.counts_.size(); ++stream)
      Include({.stream = stream, .number = other.counts_[stream]});
  }

 private:
  std::vector<std::uint64_t> counts_;  // by stream
};

}  // namespace pliant::fake_cuda
