#pragma once

#include "base/event_loop.h"
#include "trainer/runtime/learner_figures.h"

namespace pliant {

// Where the time of one tick goes. It is counted when the tick is over, so that figures are of
// whole ticks.
class TickStopwatch {
 public:
  TickStopwatch() = default;
  explicit TickStopwatch(TimePoint now) : began_(now), computed_(now) {}

  void OnComputed(TimePoint now) { computed_ = now; }        // this learner's part
  void OnComplete(TimePoint now) { complete_ = now; }        // the others' parts, too
  void AddDataWait(Duration wait) { data_waited_ += wait; }  // within the computing

  void CountInto(LearnerFigures& figures, TimePoint committed) const {
    figures.computing += computed_ - began_;
    figures.data_waiting += data_waited_;
    figures.waiting += complete_ - computed_;
    figures.committing += committed - complete_;
  }

 private:
  TimePoint began_{};
  TimePoint computed_{};
  TimePoint complete_{};
  Duration data_waited_{};
};

}  // namespace pliant
