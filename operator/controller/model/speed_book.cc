#include "operator/controller/model/speed_book.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

namespace pliant::controller {
namespace {

int DivideUp(std::int64_t number, std::int64_t by) {
  return static_cast<int>((number + by - 1) / by);
}

// The work of the busiest of `ranks` processes, one per GPU, in a step.
speed::StepWork WorkOf(const api::FrozenTraining& training, int ranks) {
  const auto batch = static_cast<double>(training.global_batch_size);
  if (training.reproducibility == api::Reproducibility::kStatistical) {
    return {.parts = 1, .samples = batch / ranks};
  }
  const int shards = DivideUp(training.logical_shards, ranks);
  return {.parts = static_cast<double>(shards),
          .samples = shards * batch / training.logical_shards};
}

// nullopt: it makes no sense, or would divide by zero.
std::optional<speed::MeasuredStep> StepOf(const api::MeasuredSpeed& speed,
                                          const api::FrozenTraining& training, int gpus) {
  const double seconds = static_cast<double>(training.global_batch_size) / speed.samples_per_second;
  const bool makes_sense = seconds > 0 && std::isfinite(seconds) && speed.compute_seconds > 0 &&
                           std::isfinite(speed.compute_seconds) && speed.learners > 0 &&
                           speed.nodes > 0 && training.logical_shards > 0;
  if (!makes_sense) return std::nullopt;
  const int ranks = speed.learners * gpus;
  return speed::MeasuredStep{.learners = ranks,
                             .nodes = speed.nodes,
                             .work = WorkOf(training, ranks),
                             .step_seconds = seconds,
                             .compute_seconds = std::min(speed.compute_seconds, seconds)};
}

// nullopt: the membership has not been steady for long, or nobody knows where its learners are.
std::optional<api::MeasuredSpeed> ReportedSpeedOf(const JobView& view) {
  if (view.coordinator.progress == nullptr) return std::nullopt;
  const Progress& progress = *view.coordinator.progress;
  if (!progress.speed || progress.speed->seconds < SpeedBook::kSteadySeconds) return std::nullopt;
  if (progress.state != CoordinatorState::kRunning) return std::nullopt;
  std::set<std::string> nodes;
  for (const std::string& name : progress.members) {
    const auto pod =
        std::ranges::find(view.learners, name, [](const api::Pod& each) { return each.meta.name; });
    if (pod == view.learners.end() || NodeOf(*pod).empty()) return std::nullopt;
    nodes.insert(NodeOf(*pod));
  }
  return api::MeasuredSpeed{.learners = static_cast<int>(progress.members.size()),
                            .nodes = static_cast<int>(nodes.size()),
                            .samples_per_second = progress.speed->samples_per_second,
                            .compute_seconds = progress.speed->compute_seconds};
}

// Two digits: what is written to a status should not change with noise.
double Rounded(double number) {
  if (!(number > 0)) return 0;
  const double exponent = 1 - std::floor(std::log10(number));
  const double power = std::pow(10, std::abs(exponent));
  // To divide by a power of ten is exact to the last digit, to multiply by a fraction is not.
  return exponent < 0 ? std::round(number / power) * power : std::round(number * power) / power;
}

// The sizes that a new leader should know: the largest and others that were tried.
std::vector<api::MeasuredSpeed> ForStatus(const speed::StepTable& table,
                                          const api::FrozenTraining& training, int gpus) {
  std::vector<api::MeasuredSpeed> speeds;
  const auto& steps = table.steps();
  const std::size_t count = std::min(steps.size(), api::kMaxMeasuredSpeeds);
  for (std::size_t index = steps.size() - count; index < steps.size(); ++index) {
    const speed::MeasuredStep& step = steps[index];
    const double samples = static_cast<double>(training.global_batch_size);
    speeds.push_back({.learners = step.learners / gpus,
                      .nodes = step.nodes,
                      .samples_per_second = Rounded(samples / step.step_seconds),
                      .compute_seconds = Rounded(step.compute_seconds)});
  }
  return speeds;
}

}  // namespace

SpeedBook::Kind& SpeedBook::KindOf(const JobView& view, const api::FrozenTraining& training) {
  const api::ElasticTrainingJob& job = *view.job;
  const KindKey key{.name_space = job.meta.name_space,
                    .gpu_product = job.status.gpu_product,
                    .template_hash = job.spec.learner_template.hash,
                    .batch = training.global_batch_size,
                    .shards = training.logical_shards,
                    .bitwise = training.reproducibility == api::Reproducibility::kBitwise,
                    .gpus_per_learner = job.spec.elastic.gpus_per_learner};
  const auto [at, is_new] = kinds_.try_emplace(key);
  at->second.used = ++clock_;
  if (!is_new) return at->second;
  const auto begin = kinds_.lower_bound({.name_space = key.name_space});
  auto end = begin;
  std::size_t count = 0;
  auto oldest = at;
  for (; end != kinds_.end() && end->first.name_space == key.name_space; ++end, ++count) {
    if (end->second.used < oldest->second.used) oldest = end;
  }
  if (count > kMaxKindsOfNamespace) kinds_.erase(oldest);
  return at->second;
}

void SpeedBook::Learn(const speed::MeasuredStep& step, Kind& kind) {
  if (!kind.table.Add(step)) return;
  kind.model.emplace(kind.table.steps());
  kind.version = ++clock_;
}

void SpeedBook::Observe(JobView& view, const api::FrozenTraining& training,
                        std::int64_t gpus_of_node) {
  if (training.global_batch_size <= 0 || training.logical_shards <= 0) return;
  const api::ElasticTrainingJob& job = *view.job;
  const int gpus = job.spec.elastic.gpus_per_learner;
  KnownSpeed& known = view.soft_state.speed;
  Kind& kind = KindOf(view, training);
  const auto learn = [&](const api::MeasuredSpeed& speed) {
    if (const auto step = StepOf(speed, training, gpus)) Learn(*step, kind);
  };
  if (!known.status_was_read) {
    known.status_was_read = true;
    // Another job, or this one, may have newer measurements.
    if (!kind.model) std::ranges::for_each(job.status.speeds, learn);
  }
  if (const auto reported = ReportedSpeedOf(view)) learn(*reported);
  if (!kind.model) return;
  const int max_learners = job.spec.elastic.max_learners;
  gpus_of_node = std::max<std::int64_t>(gpus_of_node, gpus);
  const bool is_current = known.version == kind.version && known.max_learners == max_learners &&
                          known.gpus_of_node == gpus_of_node;
  if (is_current) return;
  known.version = kind.version;
  known.max_learners = max_learners;
  known.gpus_of_node = gpus_of_node;
  known.measured = ForStatus(kind.table, training, gpus);
  known.curve.clear();
  const int tried = DivideUp(kind.model->most_learners(), gpus);
  const int most = std::min(max_learners, kMaxTimesBeyond * tried);
  const std::int64_t learners_of_node = gpus_of_node / gpus;
  for (int learners = 1; learners <= most; ++learners) {
    const double seconds = kind.model->Seconds(
        learners * gpus, DivideUp(learners, learners_of_node), WorkOf(training, learners * gpus));
    if (learners == 1) known.alone_seconds_per_step = seconds;
    const double permille = std::round(1000 * known.alone_seconds_per_step / seconds);
    known.curve.push_back(static_cast<int>(std::clamp<double>(permille, 1, planner::kMaxSpeed)));
  }
}

}  // namespace pliant::controller
