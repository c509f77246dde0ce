#include "trainer/process/learner_metrics.h"

#include "base/metric_registry.h"

namespace pliant {
namespace {

using prometheus::Counter;

void Show(std::uint64_t count, Counter& counter) {
  SetAtLeast(counter, static_cast<double>(count));
}
void Show(Duration time, Counter& counter) { SetAtLeast(counter, ToSeconds(time)); }

}  // namespace

// Counters only: a cluster has many learners, and each histogram has a dozen series per learner.
struct LearnerMetrics::Families {
  explicit Families(const std::string& job) : registry(JobMetricLabels(job)) {}

  MetricRegistry registry;  // before its families

  prometheus::Gauge& member =
      registry.AddGauges("pliant_learner_member", {}, "1 while the learner trains, else 0.")
          .Add({});
  Counter& steps = registry
                       .AddCounters("pliant_learner_steps_total", {},
                                    "Optimizer steps that the learner took part in.")
                       .Add({});
  Counter& samples =
      registry
          .AddCounters(
              "pliant_learner_samples_total", {},
              "Training samples that the learner computed in the steps that it took part in.")
          .Add({});
  Counter& computing =
      registry
          .AddCounters(
              "pliant_learner_compute_seconds_total", {},
              "Time that the learner spent computing its shards of training and evaluation.")
          .Add({});
  Counter& data_waiting =
      registry
          .AddCounters("pliant_learner_data_wait_seconds_total", {},
                       "Part of the compute time in which the learner waited for samples.")
          .Add({});
  Counter& waiting =
      registry
          .AddCounters("pliant_learner_wait_seconds_total", {},
                       "Time in which the learner had finished its shards and waited for "
                       "other learners.")
          .Add({});
  Counter& committing = registry
                            .AddCounters("pliant_learner_commit_seconds_total", {},
                                         "Time that the learner spent in optimizer updates.")
                            .Add({});
  Counter& pausing =
      registry
          .AddCounters(
              "pliant_learner_pause_seconds_total", {},
              "Time between the last step before a membership change and the first one after it.")
          .Add({});
  Counter& ticks_aborted =
      registry
          .AddCounters("pliant_learner_ticks_given_up_total", {},
                       "Steps and evaluations that were aborted because a learner was lost, and "
                       "repeated without it.")
          .Add({});
  Counter& kept =
      registry
          .AddCounters("pliant_learner_shards_kept_total", {},
                       "Shards that were finished when their step was aborted, and that the "
                       "learner did not compute again.")
          .Add({});
  Counter& in_rounds =
      registry
          .AddCounters("pliant_learner_nccl_steps_total", {},
                       "Steps in which the learner exchanged gradients from GPU to GPU, over NCCL.")
          .Add({});
  MetricRegistry::Counters& communicators =
      registry.AddCounters("pliant_learner_nccl_communicators_total", {"result"},
                           "NCCL communicators that the learner made, and those that failed while "
                           "they were made or used, by result.");
  Counter& made = communicators.Add({{"result", "success"}});
  Counter& failed = communicators.Add({{"result", "error"}});
  Counter& sent =
      registry.AddCounters("pliant_learner_sent_bytes_total", {}, "Bytes sent to other learners.")
          .Add({});
  Counter& received = registry
                          .AddCounters("pliant_learner_received_bytes_total", {},
                                       "Bytes received from other learners.")
                          .Add({});
  MetricRegistry::Counters& checkpoints =
      registry.AddCounters("pliant_learner_checkpoints_total", {"result"},
                           "Checkpoints that the learner wrote or failed to write, by result.");
  Counter& saved = checkpoints.Add({{"result", "success"}});
  Counter& not_saved = checkpoints.Add({{"result", "error"}});
  Counter& saving =
      registry
          .AddCounters("pliant_learner_checkpoint_seconds_total", {},
                       "Time in which the learner wrote checkpoints, in parallel with the "
                       "training.")
          .Add({});
};

LearnerMetrics::LearnerMetrics(const std::string& job)
    : families_(std::make_unique<Families>(job)) {}
LearnerMetrics::~LearnerMetrics() = default;

std::string LearnerMetrics::Serialize(const LearnerStats& stats) {
  families_->member.Set(stats.member ? 1 : 0);
  Show(stats.steps, families_->steps);
  Show(stats.samples, families_->samples);
  Show(stats.computing, families_->computing);
  Show(stats.data_waiting, families_->data_waiting);
  Show(stats.waiting, families_->waiting);
  Show(stats.committing, families_->committing);
  Show(stats.pausing, families_->pausing);
  Show(stats.ticks_aborted, families_->ticks_aborted);
  Show(stats.shards_kept, families_->kept);
  Show(stats.steps_in_rounds, families_->in_rounds);
  Show(stats.communicators, families_->made);
  Show(stats.communicators_failed, families_->failed);
  Show(stats.bytes_sent, families_->sent);
  Show(stats.bytes_received, families_->received);
  Show(stats.checkpoints, families_->saved);
  Show(stats.checkpoints_failed, families_->not_saved);
  Show(stats.saving, families_->saving);
  return families_->registry.Text();
}

std::vector<MetricFamily> LearnerMetrics::families() const {
  return families_->registry.families();
}

}  // namespace pliant
