#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "simulator/events/work.h"
#include "simulator/model/placement.h"

namespace pliant::simulator {

// How far the training of a job is while time passes: it continues at one rate until its
// learners change, a pause begins, or a phase ends. Times are milliseconds since the beginning of
// the run.
class TrainingClock {
 public:
  // `learned` may be null, see Work::Begin; otherwise it outlives the clock.
  TrainingClock(std::shared_ptr<const Work> work, const LearnedSteps* learned,
                std::int64_t checkpoint_every)
      : work_(std::move(work)), learned_(learned), checkpoint_every_(checkpoint_every) {}

  // `now` never goes back.
  void AdvanceTo(std::int64_t now);
  // No progress is made until then, if learners are there.
  void PauseUntil(std::int64_t time);
  // The learners that train from now on; empty: none. `planned`: the ones that the job is to have.
  // Call AdvanceTo first.
  void TrainOn(Placement placement, Placement planned);
  // All learners are lost: training continues from the newest checkpoint.
  void LoseAll();
  // The time has come that phase_ends_at() said.
  void EndPhase();

  // Absent: no learners train, or the phase never ends.
  std::optional<std::int64_t> phase_ends_at() const;
  // Changes with every new rate: an event for an earlier one is out of date.
  std::uint64_t version() const { return version_; }
  // Changes with every new speed of steps: with the learners, pauses and the batch.
  std::uint64_t size_version() const { return size_version_; }
  bool is_done() const { return work_->IsDone(state_); }
  bool trains() const { return !placement_.empty(); }
  std::optional<std::int64_t> started() const { return started_; }  // first step
  const WorkState& state() const { return state_; }
  const Placement& placement() const { return placement_; }
  // Since when it has made progress at the present rate, or will; absent: it makes none.
  std::optional<std::int64_t> steady_since() const {
    if (!trains() || is_done()) return std::nullopt;
    return std::max(advanced_to_, paused_until_);
  }
  planner::SpeedCurve Speeds() const { return work_->Speeds(state_, learned_); }
  const Work& work() const { return *work_; }
  // Σ time · speed / speed of one learner, of all that was trained.
  double useful_seconds() const { return useful_seconds_; }
  double lost_seconds() const { return lost_seconds_; }
  // Relative to one learner; 0: none trains.
  double speed() const { return speed_; }

 private:
  void SetRate();

  std::shared_ptr<const Work> work_;
  const LearnedSteps* learned_;
  std::int64_t checkpoint_every_;
  WorkState state_;
  WorkState checkpoint_;
  std::int64_t checkpoint_at_ = 0;
  double trained_seconds_ = 0;  // since the checkpoint
  Placement placement_;
  Placement planned_;  // not empty while learners train
  double rate_ = 0;    // progress a second
  double speed_ = 0;   // relative to one learner
  bool phase_has_begun_ = false;
  std::int64_t advanced_to_ = 0;
  std::int64_t paused_until_ = 0;
  std::optional<std::int64_t> started_;
  std::uint64_t version_ = 0;
  std::uint64_t size_version_ = 0;
  double useful_seconds_ = 0;
  double lost_seconds_ = 0;
};

}  // namespace pliant::simulator
