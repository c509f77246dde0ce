#pragma once

#include <optional>

#include "operator/planner/speed_curve.h"
#include "operator/speed/step_model.h"
#include "operator/speed/step_table.h"
#include "simulator/model/placement.h"

namespace pliant::simulator {

// Where the work of a job stands: what a checkpoint has.
struct WorkState {
  int phase = 0;        // finished phases
  double progress = 0;  // from the beginning, in units of the work
  int batch = 0;        // samples a step in this phase; 0: not decided yet
  bool operator==(const WorkState&) const = default;
};

// Measurements of the jobs of one kind.
struct LearnedSteps {
  speed::StepTable table;
  std::optional<speed::StepModel> model;  // fitted to the table; absent: it is empty
};

// The computation of a job, and how fast it is on which nodes. It has phases, such as epochs: in a
// phase the speed depends on the placement alone.
class Work {
 public:
  virtual ~Work() = default;

  // Progress a second on these nodes, which are at least one; > 0.
  virtual double Rate(const WorkState& state, const Placement& placement) const = 0;
  // The progress at which the phase ends; infinite if it never does.
  virtual double PhaseEnd(const WorkState& state) const = 0;
  virtual bool IsDone(const WorkState& state) const = 0;
  // The state in which a phase begins: what is decided once a phase is decided here. `planned`: the
  // nodes that the job is to have, though some of its learners may not have started. `learned`:
  // what the decision may know of speeds; null: all.
  virtual WorkState Begin(WorkState state, const Placement& planned,
                          const LearnedSteps* learned) const = 0;

  // The speeds up to `max_learners` on as few nodes as possible: the true ones, or, unless null, as
  // measurements show them; empty: unknown.
  virtual planner::SpeedCurve Speeds(const WorkState& state, const LearnedSteps* learned) const = 0;
  // A step on these nodes as a coordinator measures it; absent: it cannot.
  virtual std::optional<speed::MeasuredStep> Measure(const WorkState& state,
                                                     const Placement& placement) const = 0;
  // Progress a second of one learner.
  virtual double RateAlone(const WorkState& state) const = 0;
  // Seconds that the rest takes with one learner; infinite if it never ends.
  virtual double SecondsAlone(const WorkState& state) const = 0;
  virtual int max_learners() const = 0;
};

}  // namespace pliant::simulator
