#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "simulator/events/work.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// How a job chooses its batch. All but kFixed choose among the smallest one, twice that, four
// times, ..., where a segment of an epoch begins, and keep it to the end of the segment.
enum class BatchRule {
  kFixed,      // the one that it was submitted with
  kFromState,  // at most half of the noise scale
  kRecorded,   // the one that trains fastest on the nodes that the job has then
};

// Times of steps by learners on as few nodes as possible, computed once for each application and
// each number of GPUs of a learner. Profiles were measured with one process for each GPU, so a
// learner of two GPUs is as two of one on the same node.
class PackedTimes {
 public:
  // `profile` outlives it. A learner has at most `gpus_per_node` GPUs.
  PackedTimes(const Profile& profile, int gpus_per_node, int max_learners,
              int gpus_per_learner = 1);

  struct Option {
    int candidate = 0;  // the batch that is divided among the learners
    int batch = 0;      // samples a step
    double step_seconds = 0;
  };
  // The options of the smallest batch, of twice that, four times, ... that have enough samples for
  // these learners; of rising batches.
  const std::vector<Option>& With(int learners) const { return options_[learners - 1]; }
  int max_learners() const { return static_cast<int>(options_.size()); }
  // GPUs of each node: of so many learners on as few nodes as possible, of learners on each node.
  Placement PackedGpus(int learners) const;
  Placement GpusOf(Placement learners) const;
  int gpus_per_learner() const { return gpus_per_learner_; }

 private:
  int gpus_per_node_;
  int gpus_per_learner_;
  std::vector<std::vector<Option>> options_;  // by learners, from 1
};

// A training of a profiled application. Its phases are segments of its epochs, whole epochs if the
// batch is fixed. Progress counts iterations of the smallest batch.
class ProfiledWork : public Work {
 public:
  // `profile` outlives it. `batch`: as submitted; used by kFixed only.
  ProfiledWork(const Profile& profile, std::shared_ptr<const PackedTimes> times, int batch,
               BatchRule rule, int max_learners);

  double Rate(const WorkState& state, const Placement& placement) const override;
  double PhaseEnd(const WorkState& state) const override;
  bool IsDone(const WorkState& state) const override {
    return state.phase >= static_cast<int>(segments_.size());
  }
  WorkState Begin(WorkState state, const Placement& planned,
                  const LearnedSteps* learned) const override;
  planner::SpeedCurve Speeds(const WorkState& state, const LearnedSteps* learned) const override;
  std::optional<speed::MeasuredStep> Measure(const WorkState& state,
                                             const Placement& placement) const override;
  double RateAlone(const WorkState& state) const override;
  double SecondsAlone(const WorkState& state) const override;
  int max_learners() const override { return max_learners_; }

 private:
  // On as few nodes as possible; 0 if the batch has too few samples for these learners.
  struct Segment {
    int epoch = 0;
    double end = 0;          // progress
    double alone_after = 0;  // seconds from its end to that of the training, with one learner
  };
  void AddSegments();
  // The epoch of the phase; the last one if all are done.
  int EpochOf(const WorkState& state) const;
  // In which the noise was last measured.
  int SeenEpochOf(const WorkState& state) const {
    return EpochOf({.phase = std::max(state.phase - 1, 0)});
  }
  double PackedRate(const WorkState& state, int learners) const;
  double BestPackedRate(int epoch, int learners) const;
  int FastestBatch(int epoch, const Placement& placement) const;
  // The same by what was learned: noise of the epoch before, and the fitted time of a step.
  // What was learned counts GPUs, because jobs of an application may have learners of several.
  double LearnedRate(const WorkState& state, const speed::StepModel& model, const Placement& gpus,
                     int batch) const;
  int FastestLearnedBatch(const WorkState& state, const speed::StepModel& model,
                          const Placement& placement) const;
  planner::SpeedCurve LearnedSpeeds(const WorkState& state, const speed::StepModel& model) const;
  int BatchOfNoise(const WorkState& state) const;

  const Profile& profile_;
  std::shared_ptr<const PackedTimes> times_;
  int batch_;
  BatchRule rule_;
  int max_learners_;
  std::vector<PackedTimes::Option> fixed_;  // kFixed: by learners, from 1
  std::vector<Segment> segments_;
};

}  // namespace pliant::simulator
