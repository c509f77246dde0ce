#include "simulator/model/profile.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace pliant::simulator {

Profile::Profile(ProfileTables tables)
    : application_(std::move(tables.application)),
      epochs_(tables.epochs),
      min_local_(tables.min_local),
      max_local_(tables.max_local),
      max_gpus_(tables.max_gpus),
      step_times_(std::move(tables.placements), std::move(tables.scalability),
                  std::move(tables.extra)),
      validations_(std::move(tables.validations)) {
  CHECK(epochs_ > 0 && !validations_.empty(), "readers refuse empty tables");
  for (int epoch = 0; epoch < epochs_; ++epoch) {
    double bound = std::numeric_limits<double>::infinity();
    for (const Validation& each : validations_) {
      CHECK(each.epochs.size() >= static_cast<std::size_t>(epochs_), "readers refuse gaps");
      bound = std::min(bound, each.epochs[RowOf(epoch)].progress);
    }
    bounds_.push_back(bound);
  }
}

int Profile::MaxLearners(int batch) const {
  const int by_batch = std::max(batch / min_local_, 1);
  return max_gpus_ ? std::min(by_batch, *max_gpus_) : by_batch;
}

std::size_t Profile::RowOf(int epoch) const {
  return static_cast<std::size_t>(std::clamp(epoch, 0, epochs_ - 1));
}

template <typename Value>
double Profile::AtBatch(int batch, Value value) const {
  if (batch <= min_batch()) return value(validations_.front());
  if (batch >= max_batch()) return value(validations_.back());
  const auto high = std::ranges::lower_bound(validations_, batch, {}, &Validation::batch);
  if (high->batch == batch) return value(*high);
  const auto low = high - 1;
  const double y_low = value(*low);
  return (value(*high) - y_low) / (high->batch - low->batch) * (batch - low->batch) + y_low;
}

GradientStats Profile::Gradients(int epoch, int batch) const {
  const std::size_t row = RowOf(epoch);
  return {.square = AtBatch(
              batch, [&](const Validation& each) { return each.epochs[row].gradients.square; }),
          .variance = AtBatch(
              batch, [&](const Validation& each) { return each.epochs[row].gradients.variance; })};
}

double Profile::Iterations(int epoch, int batch) const {
  const std::size_t row = RowOf(epoch);
  return AtBatch(batch, [&](const Validation& each) { return each.epochs[row].iterations; });
}

double Profile::ProgressBound(int epoch) const { return bounds_[RowOf(epoch)]; }

std::optional<std::size_t> Profiles::Find(std::string_view application) const {
  const auto found = std::ranges::find(profiles_, application, &Profile::application);
  if (found == profiles_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - profiles_.begin());
}

std::string Profiles::Names() const {
  std::string names;
  for (const Profile& each : profiles_) {
    if (!names.empty()) names += ", ";
    names += each.application();
  }
  return names;
}

}  // namespace pliant::simulator
