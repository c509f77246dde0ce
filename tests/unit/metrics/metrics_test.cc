#include "operator/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, AJobsSeriesGoWithIt) {
  Metrics metrics;
  metrics.SetJob({.name_space = "a", .name = "one", .allocated_gpus = 3, .desired_gpus = 4});
  metrics.SetJob({.name_space = "a", .name = "two", .allocated_gpus = 5});
  metrics.SetJob({.name_space = "a", .name = "one", .allocated_gpus = 4, .desired_gpus = 4});
  EXPECT_THAT(metrics.Text(),
              HasSubstr("pliant_job_allocated_gpus{job_name=\"one\",job_namespace=\"a\"} 4"));
  metrics.RemoveJob("a", "one");
  metrics.RemoveJob("a", "one");
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("\"one\"")));
  EXPECT_THAT(metrics.Text(),
              HasSubstr("pliant_job_allocated_gpus{job_name=\"two\",job_namespace=\"a\"} 5"));
}

TEST(Metrics, ALifesCountsOnlyGrow) {
  Metrics metrics;
  const JobStats job{.name_space = "a", .name = "one", .restarts = 2, .resizes = 7};
  metrics.SetJob(job);
  metrics.SetJob(job);
  metrics.SetJob({.name_space = "a", .name = "one", .restarts = 3, .resizes = 6});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("pliant_job_restarts_total{job_name=\"one\",job_namespace=\"a\"} 3"));
  EXPECT_THAT(text, HasSubstr("pliant_job_resizes_total{job_name=\"one\",job_namespace=\"a\"} 7"));
}

TEST(Metrics, AJobWaitsUntilItHasAGpu) {
  Metrics metrics;
  metrics.SetJob({.name_space = "a", .name = "one", .waiting_since = 1.5e9});
  const std::string series =
      "pliant_job_waiting_since_timestamp_seconds{job_name=\"one\",job_namespace=\"a\"} 1500000000";
  EXPECT_THAT(metrics.Text(), HasSubstr(series));
  metrics.SetJob({.name_space = "a", .name = "one"});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("waiting_since")));
  metrics.OnWaitEnded(std::chrono::seconds(90));
  EXPECT_THAT(metrics.Text(), HasSubstr("pliant_job_wait_seconds_sum 90"));
}

TEST(Metrics, AJobsSpeedsAreByLearners) {
  Metrics metrics;
  metrics.SetJob({.name_space = "a", .name = "one"});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("pliant_job_efficiency{")));
  metrics.SetJob({.name_space = "a",
                  .name = "one",
                  .efficiency = 0.75,
                  .samples_per_second = {{1, 100}, {4, 300}}});
  const std::string labels = "{job_name=\"one\",job_namespace=\"a\"";
  const std::string speed = "pliant_job_measured_samples_per_second" + labels;
  for (const std::string& line :
       {"pliant_job_efficiency" + labels + "} 0.75\n", speed + ",learners=\"1\"} 100\n",
        speed + ",learners=\"4\"} 300\n"}) {
    EXPECT_THAT(metrics.Text(), HasSubstr(line));
  }
}

TEST(Metrics, AQueuesSeriesGoWithTheQueue) {
  Metrics metrics;
  metrics.SetQueues({{.name = "research", .pool = "a100", .guaranteed = 8, .lent = 3},
                     {.name = "batch", .pool = "a100", .borrowed = 3, .waiting = 2}});
  metrics.SetPools({{.name = "a100", .capacity = 16, .allocated = 12, .foreign = 1}});
  std::string text = metrics.Text();
  for (const char* line : {"pliant_queue_guaranteed_gpus{pool=\"a100\",queue=\"research\"} 8\n",
                           "pliant_queue_lent_gpus{pool=\"a100\",queue=\"research\"} 3\n",
                           "pliant_queue_borrowed_gpus{pool=\"a100\",queue=\"batch\"} 3\n",
                           "pliant_queue_jobs{pool=\"a100\",queue=\"batch\",state=\"running\"} 0\n",
                           "pliant_queue_jobs{pool=\"a100\",queue=\"batch\",state=\"waiting\"} 2\n",
                           "pliant_pool_capacity_gpus{pool=\"a100\"} 16\n",
                           "pliant_pool_foreign_gpus{pool=\"a100\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  metrics.SetQueues({{.name = "batch", .pool = "a100"}});
  text = metrics.Text();
  EXPECT_THAT(text, Not(HasSubstr("research")));
  EXPECT_THAT(text, HasSubstr("pliant_queue_lent_gpus{pool=\"a100\",queue=\"batch\"} 0\n"));
  metrics.SetPools({});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("pliant_pool_capacity_gpus{")));
}

TEST(Metrics, HaveTheNamesThatDashboardsKnow) {
  Metrics metrics;
  metrics.SetLeader("pliant-operator", true);
  metrics.OnRequest("GET", "200", std::chrono::milliseconds(3));
  metrics.OnQueueAdd();
  metrics.OnQueueTake(std::chrono::milliseconds(1));
  metrics.OnReconcile(ReconcileResult::kError, std::chrono::milliseconds(1));
  metrics.OnPlan(std::chrono::microseconds(70), 8);
  metrics.SetJobsInPhase("Running", 2);
  const std::string text = metrics.Text();
  for (const char* line :
       {"leader_election_master_status{name=\"pliant-operator\"} 1",
        "rest_client_requests_total{code=\"200\",method=\"GET\"} 1", "workqueue_adds_total{",
        "workqueue_queue_duration_seconds_count{",
        "controller_runtime_reconcile_total{controller=\"jobs\",result=\"error\"} 1",
        "controller_runtime_reconcile_errors_total{controller=\"jobs\"} 1",
        "pliant_plan_duration_seconds_count 1", "pliant_capacity_gpus 8",
        "pliant_jobs{phase=\"Running\"} 2"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace pliant::metrics
