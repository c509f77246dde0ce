#include "trainer/coordinator/job_metrics.h"

#include <sstream>
#include <string_view>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace pliant {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kPauseSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                   0.5,   1,    2.5,   5,    10,  30};
const Histogram::BucketBoundaries kResizeSeconds = {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};

std::string_view ToString(Resize::Kind kind) {
  return kind == Resize::Kind::kPlanned ? "planned" : "recovery";
}

}  // namespace

struct JobMetrics::Families {
  explicit Families(const std::string& job) : labels{{"job", job}} {}

  Family<Gauge>& MakeGauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(labels).Register(registry);
  }
  Family<Counter>& MakeCounter(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(labels).Register(registry);
  }
  Family<Histogram>& MakeHistogram(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(labels).Register(registry);
  }

  // A series that is not known yet is absent, not 0.
  template <typename T>
  static void SetIfKnown(Family<Gauge>& family, const std::optional<T>& value) {
    if (value) family.Add({}).Set(static_cast<double>(*value));
  }

  prometheus::Registry registry;  // before its families
  const prometheus::Labels labels;

  Family<Gauge>& step = MakeGauge("pliant_train_step", "Optimizer steps committed.");
  Family<Gauge>& steps_total =
      MakeGauge("pliant_train_steps_wanted", "Optimizer steps of the job.");
  Family<Gauge>& epoch = MakeGauge("pliant_train_epoch", "Pass over the data that is under way.");
  Family<Gauge>& loss = MakeGauge("pliant_train_loss", "Mean training loss of late.");
  Family<Gauge>& accuracy =
      MakeGauge("pliant_train_accuracy", "Test accuracy of the newest evaluation.");
  Family<Gauge>& speed =
      MakeGauge("pliant_train_samples_per_second", "Training samples committed per second.");
  Family<Gauge>& members = MakeGauge("pliant_train_members", "Learners that train now.");
  Family<Gauge>& connections =
      MakeGauge("pliant_coordinator_connections", "Learners connected to the coordinator.");
  Family<Gauge>& term = MakeGauge("pliant_coordinator_term", "Term of the coordinator.");
  Family<Gauge>& state =
      MakeGauge("pliant_train_state", "1 for the state that the job is in, by its name.");
  Family<Gauge>& checkpoint_time = MakeGauge("pliant_checkpoint_last_success_timestamp_seconds",
                                             "Unix time of the newest checkpoint.");
  Family<Gauge>& checkpoint_step =
      MakeGauge("pliant_checkpoint_last_success_step", "Step of the newest checkpoint.");
  Family<Gauge>& checkpoint_failing =
      MakeGauge("pliant_checkpoint_failing", "1 when the last try to write a checkpoint failed.");
  Family<Counter>& resizes = MakeCounter("pliant_train_resizes_total",
                                         "Changes of the membership, planned or to recover.");
  Family<Counter>& steps_lost =
      MakeCounter("pliant_train_steps_lost_total", "Committed steps that had to be done again.");
  Family<Histogram>& pause =
      MakeHistogram("pliant_train_pause_seconds",
                    "Longest time between two commits of a surviving learner around a change.");
  Family<Histogram>& resize_time = MakeHistogram(
      "pliant_train_resize_seconds", "From the request of a change to its first commit.");
  Family<Counter>& messages =
      MakeCounter("pliant_coordinator_messages_total", "Messages taken from learners, by type.");
  Family<Counter>& refused_messages = MakeCounter("pliant_coordinator_refused_messages_total",
                                                  "Messages that were not understood.");
  Family<Counter>& refused_plans =
      MakeCounter("pliant_coordinator_refused_plans_total", "Plans that were invalid or outdated.");
};

JobMetrics::JobMetrics(const std::string& job) : families_(std::make_unique<Families>(job)) {
  families_->refused_messages.Add({});
  families_->refused_plans.Add({});
  families_->steps_lost.Add({});
  for (const auto kind : {Resize::Kind::kPlanned, Resize::Kind::kRecovery}) {
    families_->resizes.Add({{"kind", std::string(ToString(kind))}});
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
    // Its figures may still grow until the next one begins or all members have reported.
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

std::string JobMetrics::Serialize(const JobProgress& progress, std::size_t connections) {
  Observe(progress);
  Families& f = *families_;
  f.term.Add({}).Set(static_cast<double>(progress.term));
  f.connections.Add({}).Set(static_cast<double>(connections));
  f.members.Add({}).Set(progress.membership ? progress.membership->world_size() : 0);
  for (const JobState state : {JobState::kWaiting, JobState::kRunning, JobState::kResizing,
                               JobState::kRecovering, JobState::kDrained, JobState::kCompleted}) {
    f.state.Add({{"state", std::string(pliant::ToString(state))}}).Set(state == progress.state);
  }
  Families::SetIfKnown(f.step, progress.step);
  if (progress.figures) {
    const Progress::Figures& figures = *progress.figures;
    f.epoch.Add({}).Set(static_cast<double>(figures.epoch));
    f.steps_total.Add({}).Set(static_cast<double>(figures.total_steps));
    Families::SetIfKnown(f.loss, figures.loss);
    Families::SetIfKnown(f.speed, figures.samples_per_second);
    Families::SetIfKnown(f.accuracy, figures.accuracy);
    if (figures.last_checkpoint) {
      f.checkpoint_step.Add({}).Set(static_cast<double>(figures.last_checkpoint->step));
      f.checkpoint_time.Add({}).Set(figures.last_checkpoint->unix_seconds);
      f.checkpoint_failing.Add({}).Set(!figures.last_checkpoint->error.empty());
    }
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, f.registry.Collect());
  return text.str();
}

}  // namespace pliant
