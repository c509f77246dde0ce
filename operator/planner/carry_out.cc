#include "operator/planner/carry_out.h"

namespace pliant::planner {

JobShare ShareAfter(const JobShare& before, const Decision& decision, WallTime now) {
  JobShare after = before;
  after.desired = decision.to;
  after.admitted_minimum = decision.minimum;
  if (decision.to == 0) {
    after.started.reset();
    after.resized.reset();
  } else if (before.desired == 0) {
    after.started = now;
  } else if (before.desired != decision.to) {
    after.resized = now;
  }
  return after;
}

}  // namespace pliant::planner
