#pragma once

#include <cstdint>
#include <optional>

#include "base/event_loop.h"
#include "trainer/membership/messages.h"

namespace pliant {

// How fast one membership trains while nothing disturbs it.
struct SteadySpeed {
  double samples_per_second = 0;
  double compute_seconds = 0;  // of a tick, of the learner that computes longest
  double seconds = 0;          // since when it is steady
  bool operator==(const SteadySpeed&) const = default;
};

// Measures the speed of the present membership, as a mean over about the last minute. The time
// after an opening, or after a change of the batch, does not count: caches are cold, and windows of
// time have parts of the change.
class SpeedMeter {
 public:
  static constexpr Duration kSettling = std::chrono::seconds(2);
  static constexpr std::uint64_t kSettlingSteps = 5;

  // All members have opened the membership.
  void Begin(TimePoint now);
  // The membership is at its end.
  void End() { *this = {}; }
  // Rank 0 reports how many samples a step has. With another number, the speed is another one.
  void OnBatch(std::uint64_t samples, TimePoint now);
  // Rank 0 reports `step` committed steps, and its speed in about the last second.
  void OnReport(std::uint64_t step, double samples_per_second, double compute_seconds,
                TimePoint now);

  std::optional<SteadySpeed> speed() const;

 private:
  static constexpr int kMemory = 60;  // a report counts at least 1 / kMemory

  std::optional<TimePoint> began_;
  std::optional<std::uint64_t> batch_;       // reported since then
  std::optional<std::uint64_t> first_step_;  // reported since then
  std::optional<std::uint64_t> last_step_;   // that counted
  SteadySpeed mean_;
  int reports_ = 0;
};

}  // namespace pliant
