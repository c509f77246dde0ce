#pragma once

#include "base/event_loop.h"
#include "trainer/runtime/learner_stats.h"

namespace pliant {

// Measures where the time of one tick goes. It is added to the statistics when the tick is over, so
// that these cover whole ticks.
class TickStopwatch {
 public:
  TickStopwatch() = default;
  explicit TickStopwatch(TimePoint now) : began_(now), computed_(now) {}

  void OnComputed(TimePoint now) { computed_ = now; }        // this learner's part
  void OnComplete(TimePoint now) { complete_ = now; }        // the others' parts, too
  void AddDataWait(Duration wait) { data_waited_ += wait; }  // within the computing

  void CountInto(LearnerStats& stats, TimePoint committed) const {
    stats.computing += computed_ - began_;
    stats.data_waiting += data_waited_;
    stats.waiting += complete_ - computed_;
    stats.committing += committed - complete_;
  }

 private:
  TimePoint began_{};
  TimePoint computed_{};
  TimePoint complete_{};
  Duration data_waited_{};
};

}  // namespace pliant
