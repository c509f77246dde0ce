#include "trainer/coordinator/job_metrics.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metric_registry.h"

namespace pliant {
namespace {

using prometheus::Histogram;

const Histogram::BucketBoundaries kPauseSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                   0.5,   1,    2.5,   5,    10,  30};
const Histogram::BucketBoundaries kResizeSeconds = {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};

std::string_view ToString(Resize::Kind kind) {
  return kind == Resize::Kind::kPlanned ? "planned" : "recovery";
}

}  // namespace

struct JobMetrics::Families {
  explicit Families(const std::string& job) : registry(JobMetricLabels(job)) {}

  // A series whose value is unknown is absent, not 0.
  template <typename T>
  static void SetIfKnown(MetricRegistry::Gauges& family, const std::optional<T>& value) {
    if (value) family.Add({}).Set(static_cast<double>(*value));
  }

  // Names a straggler only if the others wait for it: among equals, another one is the slowest each
  // time.
  void NameStraggler(const JobProgress& progress) {
    for (prometheus::Gauge* const series : std::exchange(straggler_series, {})) {
      straggler.Remove(series);
    }
    const std::optional<Straggler>& slowest = progress.slowest;
    if (!slowest || slowest->slowdown < kStragglerSlowdown) return;
    const auto learner = std::ranges::find_if(
        progress.learners,
        [&](const LearnerProgress& candidate) { return SameLearner(candidate.id, slowest->id); });
    if (learner == progress.learners.end() || !learner->times) return;
    const TickTimes& times = *learner->times;
    const auto set = [&](const char* part, double seconds) {
      prometheus::Gauge& series = straggler.Add({{"learner", slowest->id.name},
                                                 {"rank", std::to_string(slowest->id.local_rank)},
                                                 {"part", part}});
      series.Set(seconds);
      straggler_series.push_back(&series);
    };
    set("shard", times.shard_seconds);
    set("compute", times.compute_seconds);
    set("data_wait", times.data_wait_seconds);
    set("wait", times.wait_seconds);
    set("commit", times.commit_seconds);
  }

  MetricRegistry registry;  // declared before its families

  MetricRegistry::Gauges& step =
      registry.AddGauges("pliant_train_step", {}, "Last committed optimizer step.");
  MetricRegistry::Gauges& steps_wanted =
      registry.AddGauges("pliant_train_steps_wanted", {}, "Optimizer steps of the whole training.");
  MetricRegistry::Gauges& epoch =
      registry.AddGauges("pliant_train_epoch", {}, "Current pass over the data.");
  MetricRegistry::Gauges& loss =
      registry.AddGauges("pliant_train_loss", {}, "Recent mean training loss.");
  MetricRegistry::Gauges& accuracy = registry.AddGauges(
      "pliant_train_accuracy", {}, "Test accuracy of the newest evaluation, from 0 to 1.");
  MetricRegistry::Gauges& batch_size =
      registry.AddGauges("pliant_train_batch_size", {}, "Samples in an optimizer step.");
  MetricRegistry::Gauges& noise_scale = registry.AddGauges(
      "pliant_train_noise_scale", {},
      "Gradient noise scale: the batch beyond which more samples per step pay little.");
  MetricRegistry::Counters& samples = registry.AddCounters(
      "pliant_train_samples_total", {},
      "Training samples of committed steps since the job was created, including repeated steps.");
  MetricRegistry::Gauges& speed =
      registry.AddGauges("pliant_train_samples_per_second", {},
                         "Recent rate of committed training samples per second.");
  MetricRegistry::Gauges& members =
      registry.AddGauges("pliant_train_members", {}, "Learners that train now.");
  MetricRegistry::Gauges& connections = registry.AddGauges(
      "pliant_coordinator_connections", {}, "Learners connected to the coordinator.");
  MetricRegistry::Gauges& term =
      registry.AddGauges("pliant_coordinator_term", {}, "Term of the coordinator.");
  MetricRegistry::Gauges& state = registry.AddGauges(
      "pliant_train_state", {"state"}, "1 for the state that the job is in, 0 for the others.");
  MetricRegistry::Gauges& slowdown = registry.AddGauges(
      "pliant_train_slowest_learner_ratio", {},
      "Time of the slowest learner for a shard, divided by the median of the others.");
  MetricRegistry::Gauges& straggler = registry.AddGauges(
      "pliant_train_straggler_seconds", {"learner", "rank", "part"},
      "Mean time of the straggler in each part of a tick, by its local rank and the part.");
  std::vector<prometheus::Gauge*> straggler_series;  // series of the straggler seen last
  MetricRegistry::Gauges& checkpoint_time =
      registry.AddGauges("pliant_checkpoint_last_success_timestamp_seconds", {},
                         "Unix time of the newest checkpoint.");
  MetricRegistry::Gauges& checkpoint_step = registry.AddGauges(
      "pliant_checkpoint_last_success_step", {}, "Step of the newest checkpoint.");
  MetricRegistry::Gauges& checkpoint_failing =
      registry.AddGauges("pliant_checkpoint_failing", {},
                         "1 if the last attempt to write a checkpoint failed, else 0.");
  MetricRegistry::Counters& resizes = registry.AddCounters(
      "pliant_train_resizes_total", {"kind"}, "Membership changes, by kind: planned or recovery.");
  MetricRegistry::Counters& steps_lost = registry.AddCounters(
      "pliant_train_steps_lost_total", {}, "Committed steps that had to be repeated.");
  MetricRegistry::Histograms& pause = registry.AddHistograms(
      "pliant_train_pause_seconds", {"kind"},
      "Longest time between two commits of a surviving learner around a membership change.");
  MetricRegistry::Histograms& resize_time =
      registry.AddHistograms("pliant_train_resize_seconds", {"kind"},
                             "Time from the request of a membership change to its first commit.");
  MetricRegistry::Counters& messages = registry.AddCounters(
      "pliant_coordinator_messages_total", {"type"}, "Messages accepted from learners, by type.");
  MetricRegistry::Counters& refused_messages =
      registry.AddCounters("pliant_coordinator_refused_messages_total", {},
                           "Messages of learners that could not be decoded.");
  MetricRegistry::Counters& refused_plans =
      registry.AddCounters("pliant_coordinator_refused_plans_total", {},
                           "Plans from the operator that were rejected as invalid or outdated.");
};

JobMetrics::JobMetrics(const std::string& job) : families_(std::make_unique<Families>(job)) {
  families_->refused_messages.Add({});
  families_->refused_plans.Add({});
  families_->steps_lost.Add({});
  families_->samples.Add({});  // visible even if the job never commits a step
  for (const auto kind : {Resize::Kind::kPlanned, Resize::Kind::kRecovery}) {
    const prometheus::Labels labels{{"kind", std::string(ToString(kind))}};
    families_->resizes.Add(labels);
    families_->resize_time.Add(labels, kResizeSeconds);
    families_->pause.Add(labels, kPauseSeconds);
  }
}

JobMetrics::~JobMetrics() = default;

void JobMetrics::CountMessage(std::string_view name) {
  families_->messages.Add({{"type", std::string(name)}}).Increment();
}
void JobMetrics::CountRefusedMessage() { families_->refused_messages.Add({}).Increment(); }
void JobMetrics::CountRefusedPlan() { families_->refused_plans.Add({}).Increment(); }

void JobMetrics::Observe(const JobProgress& progress) {
  for (std::size_t i = 0; i < progress.resizes.size(); ++i) {
    const Resize& resize = progress.resizes[i];
    // Its values may still grow until the next one begins or all members have reported.
    const bool settled = i + 1 < progress.resizes.size() || progress.state == JobState::kRunning;
    if (!settled || !resize.running_unix_seconds) continue;
    if (!observed_.insert(resize.membership).second) continue;
    const std::string kind(ToString(resize.kind));
    families_->resizes.Add({{"kind", kind}}).Increment();
    families_->steps_lost.Add({}).Increment(static_cast<double>(resize.steps_lost));
    families_->resize_time.Add({{"kind", kind}}, kResizeSeconds)
        .Observe(*resize.running_unix_seconds - resize.requested_unix_seconds);
    if (resize.longest_pause_seconds) {
      families_->pause.Add({{"kind", kind}}, kPauseSeconds).Observe(*resize.longest_pause_seconds);
    }
  }
  // Resizes that the progress no longer lists do not come back.
  if (!progress.resizes.empty()) {
    observed_.erase(observed_.begin(), observed_.lower_bound(progress.resizes.front().membership));
  }
}

// The reported number falls when all learners were lost at once and a checkpoint was restored.
void JobMetrics::CountSamples(std::uint64_t samples) {
  if (samples > samples_seen_) {
    families_->samples.Add({}).Increment(static_cast<double>(samples - samples_seen_));
  }
  samples_seen_ = samples;
}

std::vector<MetricFamily> JobMetrics::families() const { return families_->registry.families(); }

std::string JobMetrics::Serialize(const JobProgress& progress, std::size_t connections) {
  Observe(progress);
  Families& f = *families_;
  f.term.Add({}).Set(static_cast<double>(progress.term));
  f.connections.Add({}).Set(static_cast<double>(connections));
  f.members.Add({}).Set(progress.membership ? progress.membership->learners() : 0);
  for (const JobState state : {JobState::kWaiting, JobState::kRunning, JobState::kResizing,
                               JobState::kRecovering, JobState::kDrained, JobState::kCompleted}) {
    f.state.Add({{"state", std::string(pliant::ToString(state))}}).Set(state == progress.state);
  }
  Families::SetIfKnown(f.step, progress.step);
  prometheus::Gauge& slowdown = f.slowdown.Add({});
  if (progress.slowest) {
    slowdown.Set(progress.slowest->slowdown);
  } else {
    f.slowdown.Remove(&slowdown);
  }
  f.NameStraggler(progress);
  if (progress.stats) {
    const Progress::Stats& stats = *progress.stats;
    f.epoch.Add({}).Set(static_cast<double>(stats.epoch));
    f.steps_wanted.Add({}).Set(static_cast<double>(stats.total_steps));
    CountSamples(stats.samples);
    Families::SetIfKnown(f.loss, stats.loss);
    const bool trains = progress.membership && progress.membership->world_size() > 0;
    f.speed.Add({}).Set(trains ? stats.samples_per_second.value_or(0) : 0);
    if (!stats.evaluations.empty())
      Families::SetIfKnown(f.accuracy, stats.evaluations.back().accuracy);
    f.batch_size.Add({}).Set(static_cast<double>(stats.batch_size));
    // Unlike them it can become unknown again.
    if (stats.noise_scale) {
      f.noise_scale.Add({}).Set(*stats.noise_scale);
    } else {
      f.noise_scale.Remove(&f.noise_scale.Add({}));
    }
    if (stats.last_checkpoint) {
      if (stats.last_checkpoint->unix_seconds > 0) {  // a checkpoint has succeeded
        f.checkpoint_step.Add({}).Set(static_cast<double>(stats.last_checkpoint->step));
        f.checkpoint_time.Add({}).Set(stats.last_checkpoint->unix_seconds);
      }
      f.checkpoint_failing.Add({}).Set(!stats.last_checkpoint->error.empty());
    }
  }
  return f.registry.Text();
}

}  // namespace pliant
