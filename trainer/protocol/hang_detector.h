#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/event_loop.h"

namespace pliant {

// A call to the program that has not come back.
struct ProgramCall {
  enum class Kind { kTrain, kEvaluate, kCommit, kEvaluated, kLoad };
  Kind kind = Kind::kTrain;
  std::uint64_t number = 0;  // of what Compute was asked for: the same may be asked for again
  std::uint64_t step = 0;    // optimizer steps committed before it
  std::optional<int> shard;  // of kTrain and kEvaluate; none: it has none to compute
  bool operator==(const ProgramCall&) const = default;
};

// For people: "shard 3 of step 17", "step 17".
std::string ToString(const ProgramCall& call);

// Finds a program that hangs, by a look at it every so often. Without I/O.
class HangDetector {
 public:
  // One call may take so long; zero: any time.
  explicit HangDetector(Duration most) : most_(most) {}

  bool watches() const { return most_ > Duration::zero(); }
  // How far apart looks should be: so late, or twice as late at most, a hang is found.
  Duration pause() const { return most_ / 20; }

  // What the program has been at for too long, as a sentence. None: it works, or waits for work.
  std::optional<std::string> Look(const std::optional<ProgramCall>& call, TimePoint now);

 private:
  const Duration most_;
  std::optional<ProgramCall> call_;  // at the look before
  TimePoint since_{};                // it was seen first
  TimePoint looked_{};
};

}  // namespace pliant
