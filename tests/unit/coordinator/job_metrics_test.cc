#include "trainer/coordinator/job_metrics.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kJob = R"(job_name="digits",job_namespace="team")";

JobProgress Running() {
  return {.term = 2,
          .membership = Membership{{2, 5}, {{{"a", "", 1}, ""}, {{"b", "", 2}, ""}}},
          .state = JobState::kRunning,
          .tick = 12,
          .step = 10};
}

TEST(JobMetrics, ShowsWhatTheProgressSays) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  progress.stats =
      Progress::Stats{.epoch = 3,
                      .total_steps = 40,
                      .loss = 0.25,
                      .samples_per_second = 512,
                      .last_checkpoint = CheckpointReport{.step = 8, .unix_seconds = 1.5e9}};
  EXPECT_THAT(metrics.Serialize(progress, 3),
              AllOf(HasSubstr("pliant_train_step{" + kJob + "} 10\n"),
                    HasSubstr("pliant_train_members{" + kJob + "} 2\n"),
                    HasSubstr("pliant_train_epoch{" + kJob + "} 3\n"),
                    HasSubstr("pliant_train_loss{" + kJob + "} 0.25\n"),
                    HasSubstr("pliant_train_samples_per_second{" + kJob + "} 512\n"),
                    HasSubstr("pliant_train_state{" + kJob + ",state=\"Running\"} 1\n"),
                    HasSubstr("pliant_train_state{" + kJob + ",state=\"Waiting\"} 0\n"),
                    HasSubstr("pliant_checkpoint_last_success_step{" + kJob + "} 8\n"),
                    HasSubstr("pliant_coordinator_connections{" + kJob + "} 3\n"),
                    HasSubstr("pliant_coordinator_term{" + kJob + "} 2\n"),
                    Not(HasSubstr("pliant_train_accuracy{"))));
}

TEST(JobMetrics, ANoiseScaleMayBecomeUnknown) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  progress.stats = Progress::Stats{.noise_scale = 1830.5, .batch_size = 512};
  EXPECT_THAT(metrics.Serialize(progress, 2),
              HasSubstr("pliant_train_noise_scale{" + kJob + "} 1830.5\n"));
  EXPECT_THAT(metrics.Serialize(progress, 2),
              HasSubstr("pliant_train_batch_size{" + kJob + "} 512\n"));
  progress.stats->noise_scale.reset();
  EXPECT_THAT(metrics.Serialize(progress, 2), Not(HasSubstr("pliant_train_noise_scale{")));
}

TEST(JobMetrics, OmitsUnknownValues) {
  JobMetrics metrics("team/digits");
  EXPECT_THAT(metrics.Serialize({}, 0),
              AllOf(Not(HasSubstr("pliant_train_step{")), Not(HasSubstr("pliant_train_loss{")),
                    HasSubstr("pliant_train_members{" + kJob + "} 0\n"),
                    HasSubstr("pliant_train_samples_total{" + kJob + "} 0\n")));
}

TEST(JobMetrics, ACheckpointThatFailedIsNone) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  progress.stats = Progress::Stats{.last_checkpoint = CheckpointReport{.error = "disk full"}};
  EXPECT_THAT(metrics.Serialize(progress, 2),
              AllOf(HasSubstr("pliant_checkpoint_failing{" + kJob + "} 1\n"),
                    Not(HasSubstr("pliant_checkpoint_last_success"))));
}

TEST(JobMetrics, NamesTheStragglerWhileThereIsOne) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  const auto tells = [&](const LearnerId& id, double slowdown) {
    progress.learners = {{.id = {"a", "", 1}, .times = TickTimes{.shard_seconds = 0.125}},
                         {.id = {"b", "", 2}, .times = TickTimes{.data_wait_seconds = 0.5}}};
    progress.slowest = Straggler{.id = id, .slowdown = slowdown};
    return metrics.Serialize(progress, 2);
  };
  const std::string name = "pliant_train_straggler_seconds{";
  const std::string starved = "learner=\"b\",part=\"data_wait\",rank=\"3\"} 0.5\n";
  EXPECT_THAT(tells({"a", "", 1}, 1.25),
              AllOf(Not(HasSubstr(name)),
                    HasSubstr("pliant_train_slowest_learner_ratio{" + kJob + "} 1.25\n")));
  EXPECT_THAT(tells({"b", "", 2, 3}, 2), HasSubstr(name + kJob + "," + starved));
  EXPECT_THAT(tells({"a", "", 1}, 2),
              AllOf(HasSubstr("learner=\"a\",part=\"shard\",rank=\"0\"} 0.125\n"),
                    Not(HasSubstr("learner=\"b\""))));
  progress.slowest.reset();
  EXPECT_THAT(metrics.Serialize(progress, 1),
              AllOf(Not(HasSubstr(name)), Not(HasSubstr("pliant_train_slowest_learner_ratio{"))));
}

TEST(JobMetrics, CountsSamplesThatAreDoneAgainToo) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  const auto text_at = [&](std::uint64_t samples) {
    progress.stats = Progress::Stats{.samples = samples};
    return metrics.Serialize(progress, 2);
  };
  const std::string name = "pliant_train_samples_total{" + kJob + "} ";
  EXPECT_THAT(text_at(1000), HasSubstr(name + "1000\n"));
  EXPECT_THAT(text_at(800), HasSubstr(name + "1000\n"));  // after a restore from a checkpoint
  EXPECT_THAT(text_at(1000), HasSubstr(name + "1200\n"));
}

TEST(JobMetrics, AJobThatDoesNotTrainHasNoSpeed) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  progress.stats = Progress::Stats{.samples_per_second = 512};
  const std::string name = "pliant_train_samples_per_second{" + kJob + "} ";
  EXPECT_THAT(metrics.Serialize(progress, 2), HasSubstr(name + "512\n"));
  progress.membership.reset();
  EXPECT_THAT(metrics.Serialize(progress, 2), HasSubstr(name + "0\n"));
}

TEST(JobMetrics, ObservesEachResizeOnceWhenItsFiguresAreSettled) {
  JobMetrics metrics("team/digits");
  JobProgress progress = Running();
  progress.state = JobState::kResizing;
  progress.resizes = {{.membership = {2, 4},
                       .requested_unix_seconds = 100,
                       .running_unix_seconds = 101,
                       .longest_pause_seconds = 0.02,
                       .steps_lost = 0},
                      {.membership = {2, 5},
                       .kind = Resize::Kind::kRecovery,
                       .requested_unix_seconds = 110,
                       .running_unix_seconds = 112,
                       .longest_pause_seconds = 0.3}};
  const std::string planned = "pliant_train_pause_seconds_count{" + kJob + ",kind=\"planned\"} 1\n";
  const std::string recovery =
      "pliant_train_pause_seconds_count{" + kJob + ",kind=\"recovery\"} 1\n";
  EXPECT_THAT(metrics.Serialize(progress, 2), AllOf(HasSubstr(planned), Not(HasSubstr(recovery))));
  progress.state = JobState::kRunning;
  for (int scrape = 0; scrape < 2; ++scrape) {
    EXPECT_THAT(
        metrics.Serialize(progress, 2),
        AllOf(HasSubstr(planned), HasSubstr(recovery),
              HasSubstr("pliant_train_resizes_total{" + kJob + ",kind=\"recovery\"} 1\n"),
              HasSubstr("pliant_train_resize_seconds_sum{" + kJob + ",kind=\"recovery\"} 2\n")));
  }
}

TEST(JobMetrics, CountsMessages) {
  JobMetrics metrics("team/digits");
  EXPECT_THAT(metrics.Serialize({}, 0),
              HasSubstr("pliant_coordinator_refused_messages_total{" + kJob + "} 0\n"));
  metrics.CountMessage("hello");
  metrics.CountMessage("hello");
  metrics.CountRefusedMessage();
  metrics.CountRefusedPlan();
  EXPECT_THAT(metrics.Serialize({}, 0),
              AllOf(HasSubstr("pliant_coordinator_messages_total{" + kJob + ",type=\"hello\"} 2\n"),
                    HasSubstr("pliant_coordinator_refused_messages_total{" + kJob + "} 1\n"),
                    HasSubstr("pliant_coordinator_refused_plans_total{" + kJob + "} 1\n")));
}

}  // namespace
}  // namespace pliant
