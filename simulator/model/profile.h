#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/model/step_times.h"

namespace pliant::simulator {

// Sums over a gradient's elements, of a training with the smallest batch: |mean|² and the variance
// between batches. Their ratio is the noise scale.
struct GradientStats {
  double square = 0;    // >= 0
  double variance = 0;  // >= 0
  bool operator==(const GradientStats&) const = default;
};

// A training with one batch, at the end of an epoch.
struct EpochRow {
  double progress = 0;  // iterations of the smallest batch that would train as far, from the start
  double iterations = 0;  // from the start
  GradientStats gradients;
};

// A complete training with one batch.
struct Validation {
  int batch = 1;
  std::vector<EpochRow> epochs;
};

// Measurements of an application. ReadProfiles checks all that is written here.
struct ProfileTables {
  std::string application;
  int epochs = 1;               // after which training ends
  int min_local = 1;            // samples a learner
  int max_local = 1;            // samples a learner without accumulation
  std::optional<int> max_gpus;  // absent: no limit
  std::vector<MeasuredPlacement> placements;
  std::vector<MeasuredSize> scalability;
  std::vector<MeasuredSize> extra;
  std::vector<Validation> validations;  // of rising batches; each has at least `epochs` rows
};

// An application: how fast its steps are, and how far each of them trains. Constant.
class Profile {
 public:
  explicit Profile(ProfileTables tables);

  const std::string& application() const { return application_; }
  int epochs() const { return epochs_; }
  // The batches for which there is a validation table. Progress counts iterations of the smallest.
  int min_batch() const { return validations_.front().batch; }
  int max_batch() const { return validations_.back().batch; }
  int min_local() const { return min_local_; }
  int max_local() const { return max_local_; }
  // The most learners that a job can use with this batch: each has at least the smallest local
  // batch.
  int MaxLearners(int batch) const;

  const StepTimes& step_times() const { return step_times_; }

  // Statistics while epoch `epoch` (from 0) is trained, linear in the batch between the two nearest
  // tables. A batch or an epoch outside the tables counts as the nearest inside.
  GradientStats Gradients(int epoch, int batch) const;
  // Iterations from the start to the end of epoch `epoch` (from 0), by the same rule.
  double Iterations(int epoch, int batch) const;
  // Progress at which epoch `epoch` (from 0) ends: the smallest of all tables.
  double ProgressBound(int epoch) const;

 private:
  std::size_t RowOf(int epoch) const;
  template <typename Value>
  double AtBatch(int batch, Value value) const;

  std::string application_;
  int epochs_;
  int min_local_;
  int max_local_;
  std::optional<int> max_gpus_;
  StepTimes step_times_;
  std::vector<Validation> validations_;  // of rising batches
  std::vector<double> bounds_;           // by epoch
};

// The applications of a data set, in the order of its list.
class Profiles {
 public:
  explicit Profiles(std::vector<Profile> profiles) : profiles_(std::move(profiles)) {}

  std::size_t size() const { return profiles_.size(); }
  const Profile& operator[](std::size_t index) const { return profiles_[index]; }
  std::optional<std::size_t> Find(std::string_view application) const;
  // For errors: "bert, cifar10".
  std::string Names() const;

 private:
  std::vector<Profile> profiles_;
};

}  // namespace pliant::simulator
