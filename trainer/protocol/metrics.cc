#include "trainer/protocol/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace pliant {
namespace {

using Json = nlohmann::json;

constexpr Duration kLineEvery = std::chrono::seconds(1);

// Whether the sum has a mean: it is finite, and over more than nothing.
bool IsMean(double sum, const ShardSums& sums) { return std::isfinite(sum / sums.total_weight()); }

// JSON has no other numbers.
void PutIfFinite(Json& object, const std::string& name, double number) {
  if (std::isfinite(number)) object[name] = number;
}

Json MetricsLine(std::string_view kind, const MetricsAccumulator::Commit& commit,
                 const ShardSums& sums) {
  Json line = {{"kind", kind},
               {"step", commit.plan.step + (commit.plan.kind == TickKind::kTrain ? 1 : 0)},
               {"tick", commit.tick},
               {"totalSteps", commit.total_steps},
               {"batchSize", commit.batch_size},
               {"epoch", commit.plan.epoch},
               {"learners", commit.learners},
               {"membership", ToString(commit.membership)},
               {"unixSeconds", commit.unix_seconds}};
  // A sum that overflowed is omitted: JSON has no such number.
  if (IsMean(sums.loss, sums)) line["loss"] = sums.loss / sums.total_weight();
  if (IsMean(sums.correct, sums)) line["accuracy"] = sums.correct / sums.total_weight();
  PutIfFinite(line, "samples", sums.samples);
  if (sums.weight) PutIfFinite(line, "weight", *sums.weight);
  Json named = Json::object();
  // A line covers several steps, each with names of its own.
  for (const auto& [name, sum] : sums.named) {
    if (named.size() < kMaxNamedSums) PutIfFinite(named, name, sum);
  }
  if (!named.empty()) line["sums"] = std::move(named);
  return line;
}

// A sum that is not finite is omitted.
Evaluation EvaluationOf(const MetricsAccumulator::Commit& commit, const ShardSums& sums) {
  Evaluation evaluation{.step = commit.plan.step, .epoch = commit.plan.epoch, .sums = {}};
  if (IsMean(sums.loss, sums)) evaluation.loss = sums.loss / sums.total_weight();
  if (IsMean(sums.correct, sums)) evaluation.accuracy = sums.correct / sums.total_weight();
  if (std::isfinite(sums.samples)) evaluation.sums["samples"] = sums.samples;
  if (sums.weight && std::isfinite(*sums.weight)) evaluation.sums["weight"] = *sums.weight;
  for (const auto& [name, sum] : sums.named) {
    if (evaluation.sums.size() == kEvaluationSums) break;
    if (std::isfinite(sum)) evaluation.sums[name] = sum;
  }
  return evaluation;
}

// Adds it in place of those that were evaluated at its step or later, before a restore.
void Keep(Evaluation evaluation, std::vector<Evaluation>& evaluations) {
  std::erase_if(evaluations, [&](const Evaluation& each) { return each.step >= evaluation.step; });
  if (evaluations.size() == kEvaluationsKept) evaluations.erase(evaluations.begin());
  evaluations.push_back(std::move(evaluation));
}

}  // namespace

std::optional<double> MetricsAccumulator::accuracy() const {
  return evaluations_.empty() ? std::nullopt : evaluations_.back().accuracy;
}

std::optional<std::string> MetricsAccumulator::OnCommit(const Commit& commit) {
  return commit.plan.kind == TickKind::kTrain ? OnTrain(commit) : OnEvaluate(commit);
}

std::optional<std::string> MetricsAccumulator::OnTrain(const Commit& commit) {
  evaluation_ = {};
  train_ = train_ + commit.sums;
  // The first commit after a pause only starts the clock.
  if (!window_start_) {
    window_start_ = commit.now;
  } else {
    samples_measured_ += commit.sums.samples;
  }
  const Duration window = commit.now - *window_start_;
  if (window < kLineEvery && !commit.plan.last_of_kind) return std::nullopt;
  loss_ = train_.loss / train_.total_weight();
  if (window > Duration::zero()) samples_per_second_ = samples_measured_ / ToSeconds(window);
  Json line = MetricsLine("train", commit, train_);
  if (samples_per_second_) line["samplesPerSecond"] = *samples_per_second_;
  train_ = {};
  samples_measured_ = 0;
  window_start_ = commit.now;
  // An evaluation follows: its time does not count as training.
  if (commit.plan.last_of_kind) window_start_.reset();
  return line.dump();
}

std::optional<std::string> MetricsAccumulator::OnEvaluate(const Commit& commit) {
  evaluation_ = evaluation_ + commit.sums;
  if (!commit.plan.last_of_kind) return std::nullopt;
  const ShardSums sums = std::exchange(evaluation_, {});
  Keep(EvaluationOf(commit, sums), evaluations_);
  return MetricsLine("test", commit, sums).dump();
}

void MetricsAccumulator::Restart(const ShardSums& evaluation) {
  train_ = {};
  samples_measured_ = 0;
  window_start_.reset();
  evaluation_ = evaluation;
}

}  // namespace pliant
