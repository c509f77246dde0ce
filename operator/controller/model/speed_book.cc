#include "operator/controller/model/speed_book.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/divide.h"
#include "base/significant.h"

namespace pliant::controller {
namespace {

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

// A step takes at least and at most this long: powers of its time stay numbers.
constexpr double kMinSeconds = 1e-6;
constexpr double kMaxSeconds = 1e6;

bool IsTime(double seconds) { return seconds >= kMinSeconds && seconds <= kMaxSeconds; }

// nullopt: it makes no sense. A program may report anything.
std::optional<speed::MeasuredStep> StepOf(const api::MeasuredSpeed& speed,
                                          const api::FrozenTraining& training, int gpus) {
  const double seconds = static_cast<double>(training.global_batch_size) / speed.samples_per_second;
  const bool makes_sense = IsTime(seconds) && IsTime(speed.compute_seconds) && speed.learners > 0 &&
                           speed.learners <= api::kMaxLearners && speed.nodes > 0 &&
                           speed.nodes <= speed.learners;
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
  std::map<std::string_view, const api::Pod*> pods;
  for (const api::Pod& pod : view.learners) pods.emplace(pod.meta.name, &pod);
  std::set<std::string_view> names;
  std::set<std::string> nodes;
  for (const std::string& name : progress.members) {
    const auto pod = pods.find(name);
    if (pod == pods.end() || NodeOf(*pod->second).empty()) return std::nullopt;
    names.insert(name);
    nodes.insert(NodeOf(*pod->second));
  }
  return api::MeasuredSpeed{.learners = static_cast<int>(names.size()),
                            .nodes = static_cast<int>(nodes.size()),
                            .samples_per_second = progress.speed->samples_per_second,
                            .compute_seconds = progress.speed->compute_seconds};
}

// A status should not change with noise.
double Rounded(double number) { return WithDigits(number, 2); }

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

SpeedBook::KindKey SpeedBook::KeyOf(const JobView& view, const api::FrozenTraining& training) {
  const api::ElasticTrainingJob& job = *view.job;
  return {.name_space = job.meta.name_space,
          .template_hash = job.spec.learner_template.hash,
          .batch = training.global_batch_size,
          .shards = training.logical_shards,
          .bitwise = training.reproducibility == api::Reproducibility::kBitwise,
          .gpus_per_learner = job.spec.elastic.gpus_per_learner,
          .gpu_product = job.status.gpu_product};
}

SpeedBook::Kind& SpeedBook::KindOf(const KindKey& key, WallTime now) {
  const auto [at, is_new] = kinds_.try_emplace(key);
  at->second.used = now;
  if (is_new) DropUnused(key.name_space, now);
  return at->second;
}

void SpeedBook::DropUnused(const std::string& name_space, WallTime now) {
  if (now - forgot_ >= kForgotten) {
    forgot_ = now;
    std::erase_if(kinds_, [now](const auto& kind) { return now - kind.second.used >= kForgotten; });
  }
  std::size_t count = 0;
  auto oldest = kinds_.end();
  for (auto at = kinds_.lower_bound({.name_space = name_space});
       at != kinds_.end() && at->first.name_space == name_space; ++at, ++count) {
    if (oldest == kinds_.end() || at->second.used < oldest->second.used) oldest = at;
  }
  // Jobs that live use theirs in each round: they bound the rest.
  if (count > kMaxKindsOfNamespace && now - oldest->second.used >= kUnused) kinds_.erase(oldest);
}

const SpeedBook::Kind* SpeedBook::KnownKind(const KindKey& key, const Kind& own) const {
  if (own.model) return &own;
  if (!key.gpu_product.empty()) return nullptr;
  const Kind* last = nullptr;
  for (auto at = kinds_.lower_bound(key); at != kinds_.end(); ++at) {
    KindKey other = at->first;
    other.gpu_product.clear();
    if (other != key) break;
    const Kind& kind = at->second;
    if (kind.model && (last == nullptr || kind.used > last->used)) last = &kind;
  }
  return last;
}

void SpeedBook::Learn(const speed::MeasuredStep& step, Kind& kind) {
  if (!kind.table.Add(step)) return;
  kind.model.emplace(kind.table.steps());
  kind.version = ++versions_;
}

void SpeedBook::Observe(JobView& view, const api::FrozenTraining& training,
                        std::int64_t gpus_of_node, WallTime now) {
  if (training.global_batch_size <= 0 || training.logical_shards <= 0) return;
  const api::ElasticTrainingJob& job = *view.job;
  const int gpus = job.spec.elastic.gpus_per_learner;
  KnownSpeed& known = view.soft_state.speed;
  const KindKey key = KeyOf(view, training);
  Kind& own = KindOf(key, now);
  const auto learn = [&](const api::MeasuredSpeed& speed) {
    if (const auto step = StepOf(speed, training, gpus)) Learn(*step, own);
  };
  // Until the first speed with a grown batch is known, its samples take as long as before.
  if (known.batch != 0 && known.batch != training.global_batch_size) {
    known.alone_seconds_per_step *=
        static_cast<double>(training.global_batch_size) / static_cast<double>(known.batch);
  }
  known.batch = training.global_batch_size;
  // The speeds of a status are those of the batch that the coordinator tells.
  const bool is_batch_known = view.coordinator.progress != nullptr || !training.max_batch_size;
  if (!known.status_was_read && is_batch_known) {
    known.status_was_read = true;
    // Another job, or this one, may have newer measurements.
    if (!own.model) std::ranges::for_each(job.status.progress.speeds, learn);
  }
  // A report counts once, however often the job is looked at.
  if (known.learned_from != view.coordinator.progress) {
    known.learned_from = view.coordinator.progress;
    if (const auto reported = ReportedSpeedOf(view)) learn(*reported);
  }
  const Kind* const kind = KnownKind(key, own);
  if (kind == nullptr || gpus_of_node == 0) return;
  const int max_learners = job.spec.elastic.max_learners;
  gpus_of_node = std::max<std::int64_t>(gpus_of_node, gpus);
  const bool is_current = known.version == kind->version && known.max_learners == max_learners &&
                          known.gpus_of_node == gpus_of_node;
  if (is_current) return;
  known.version = kind->version;
  known.max_learners = max_learners;
  known.gpus_of_node = gpus_of_node;
  known.measured = ForStatus(kind->table, training, gpus);
  MakeCurve(*kind, training, gpus, known);
}

void SpeedBook::MakeCurve(const Kind& kind, const api::FrozenTraining& training, int gpus,
                          KnownSpeed& known) const {
  known.curve.clear();
  const int tried = DivideUp(kind.model->most_learners(), gpus);
  const int most = std::min(known.max_learners, kMaxTimesBeyond * tried);
  const auto learners_of_node = static_cast<int>(known.gpus_of_node / gpus);
  for (int learners = 1; learners <= most; ++learners) {
    const int ranks = learners * gpus;
    const int nodes = DivideUp(learners, learners_of_node);
    const double seconds = kind.model->Seconds(ranks, nodes, WorkOf(training, ranks));
    if (learners == 1) known.alone_seconds_per_step = seconds;
    const double permille = std::round(1000 * known.alone_seconds_per_step / seconds);
    if (!std::isfinite(permille)) return known.curve.clear();
    // No job is faster than in proportion to its learners: else a program that reports wonders
    // would claim more than any honest one.
    known.curve.push_back(static_cast<int>(std::clamp(permille, 1.0, 1000.0 * learners)));
  }
}

}  // namespace pliant::controller
