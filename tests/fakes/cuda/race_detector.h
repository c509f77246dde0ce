#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/fakes/cuda/vector_clock.h"

namespace pliant::fake_cuda {

// Memory that an operation reads or writes. Addresses of devices and of the host do not overlap.
struct Access {
  std::uint64_t begin = 0;
  std::size_t bytes = 0;
  bool writes = false;

  std::uint64_t end() const { return begin + bytes; }
};

// Finds operations that touch the same memory, of which one writes, and of which neither happens
// before the other. Whether they do is a matter of streams, events and waits, not of the order in
// which they were run by chance: a forgotten wait is found in every run.
class RaceDetector {
 public:
  // The operation `name` at `point` touches `access`, after all that `after` includes. Returns a
  // message that names both operations if that is a race.
  std::optional<std::string> Touch(const std::string& name, Point point, const VectorClock& after,
                                   const Access& access);
  // The memory was freed: its next owner has nothing to do with earlier operations.
  void Forget(std::uint64_t begin, std::size_t bytes);

 private:
  struct Toucher {
    std::string name;
    Point point;
  };
  // Memory whose bytes were all touched by the same operations.
  struct Segment {
    std::uint64_t end = 0;
    std::optional<Toucher> writer;  // the last one
    std::vector<Toucher> readers;   // since then
  };

  // Makes `at` a boundary of segments.
  void SplitAt(std::uint64_t at);

  std::map<std::uint64_t, Segment> segments_;  // by begin; without gaps where memory was touched
};

}  // namespace pliant::fake_cuda
