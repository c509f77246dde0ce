#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/event_loop.h"

namespace pliant {

// A call to the program that has not returned.
struct ProgramCall {
  enum class Kind { kTrain, kEvaluate, kCommit, kEvaluated, kLoad };
  Kind kind = Kind::kTrain;
  // The number of the request to Compute: an equal request may follow.
  std::uint64_t number = 0;
  std::uint64_t step = 0;    // optimizer steps committed before it
  std::optional<int> shard;  // of kTrain and kEvaluate; none: there is no shard to compute
  bool operator==(const ProgramCall&) const = default;
};

// For people: "shard 3 of step 17", "step 17".
std::string ToString(const ProgramCall& call);

// Detects a program that hangs, by checking it at intervals. Without I/O.
class HangDetector {
 public:
  // `most`: the longest time for one call; zero: no limit.
  explicit HangDetector(Duration max) : max_(max) {}

  bool watches() const { return max_ > Duration::zero(); }
  // The interval between checks. A hang is found one interval late, at most two.
  Duration pause() const { return max_ / 20; }

  // A sentence that names the call that takes too long. None: the program works, or waits for work.
  std::optional<std::string> Look(const std::optional<ProgramCall>& call, TimePoint now);

 private:
  const Duration max_;
  std::optional<ProgramCall> call_;  // at the previous check
  TimePoint since_{};                // when that call was first seen
  TimePoint looked_{};
};

}  // namespace pliant
