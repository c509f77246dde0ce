#pragma once

#include <cstddef>
#include <vector>

#include "simulator/model/placement.h"

namespace pliant::simulator {

// Seconds of one step without accumulation. Computation takes step - sync.
struct StepTime {
  double step = 0;  // > 0
  double sync = 0;  // time of the all-reduce that computation does not hide; 0 to `step`
  bool operator==(const StepTime&) const = default;
};

struct LocalPoint {
  int local = 1;  // samples a learner
  StepTime time;
};

// Points of one placement.
struct MeasuredPlacement {
  Placement placement;             // a least rotation
  std::vector<LocalPoint> points;  // at least one, of rising local batches
};

// A point that does not depend on how learners are spread over their nodes.
struct MeasuredSize {
  int nodes = 1;
  int learners = 1;
  int local = 1;
  StepTime time;
};

// The time of a step for any placement and local batch.
class StepTimes {
 public:
  // `extra`: points outside the tables. They are looked up exactly and not interpolated.
  StepTimes(std::vector<MeasuredPlacement> placements, std::vector<MeasuredSize> scalability,
            std::vector<MeasuredSize> extra);

  // The first of these that there is:
  // 1. the placement was measured: linear in the local batch between its points;
  // 2. an extra point of as many nodes, learners and samples;
  // 3. linear between numbers of nodes, then of learners, then in the local batch, over the means
  //    of the measured placements and the scalability points.
  // Outside a table's range the value at its border counts. `placement` must not be empty.
  StepTime At(const Placement& placement, int local) const;

 private:
  struct OfLearners {
    int learners = 1;
    std::vector<LocalPoint> points;
  };
  struct OfNodes {
    int nodes = 1;
    std::vector<OfLearners> sizes;
  };

  const MeasuredPlacement* Find(const Placement& placement) const;
  const MeasuredSize* FindExtra(int nodes, int learners, int local) const;
  void AddMeans(std::vector<MeasuredSize> sizes);

  std::vector<MeasuredPlacement> placements_;  // sorted by placement
  std::vector<MeasuredSize> extra_;            // sorted by nodes, learners, local batch
  std::vector<OfNodes> grid_;                  // sorted at every level
};

}  // namespace pliant::simulator
