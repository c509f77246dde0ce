#include "operator/controller/rounds/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/dying_processes.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(JobMetrics, AJobsFiguresAreInGpus) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.elastic.gpus_per_learner = 4;
  Edit(view.job).status.restarts = 3;
  view.learners.push_back(Learner(2, Life::kGated));
  view.learners.push_back(Learner(3, Life::kFailed));
  view.soft_state.meter.waiting_since = At(5);
  const planner::Decision decision{.to = 3, .entitlement = 2, .demand = 8};
  const metrics::JobStats stats = StatsOf(view, &decision);
  EXPECT_EQ(stats.allocated_gpus, 8) << "only learners that hold GPUs";
  EXPECT_EQ(stats.desired_gpus, 12);
  EXPECT_EQ(stats.entitlement_gpus, 8);
  EXPECT_EQ(stats.demand_gpus, 32);
  EXPECT_EQ(stats.restarts, 3);
  EXPECT_EQ(stats.waiting_since, ToSeconds(At(5).time_since_epoch()));
  EXPECT_EQ(StatsOf(view, nullptr).desired_gpus, 0);
}

TEST(JobMetrics, SpeedsAreThoseThatWereMeasured) {
  JobView view = TrainingView(4);
  EXPECT_EQ(StatsOf(view, nullptr).efficiency, std::nullopt) << "nothing is known";
  view.soft_state.speed.curve = {1000, 1900, 2500, 3000};
  view.soft_state.speed.measured = {{.learners = 4, .nodes = 2, .samples_per_second = 250},
                                    {.learners = 4, .nodes = 1, .samples_per_second = 300},
                                    {.learners = 1, .nodes = 1, .samples_per_second = 100}};
  const metrics::JobStats stats = StatsOf(view, nullptr);
  EXPECT_EQ(stats.efficiency, 0.75);
  EXPECT_THAT(stats.samples_per_second, ElementsAre(Pair(1, 100), Pair(4, 300)));
  view.learners.clear();
  EXPECT_EQ(StatsOf(view, nullptr).efficiency, std::nullopt) << "it holds no GPU";
}

TEST(JobMetrics, JobsThatHaveEndedOrWentHaveNoSeries) {
  JobTable::Views views;
  for (const char* name : {"fresh", "gone", "over", "trains"}) {
    api::ElasticTrainingJob job = NewJob();
    job.meta.name = name;
    job.meta.uid = name;
    if (name == std::string("over")) job.status.phase = api::JobPhase::kSucceeded;
    if (name == std::string("trains")) job.status.phase = api::JobPhase::kRunning;
    views.insert({{"team-a", name}, JobView{.job = Shared(job)}});
  }
  metrics::Metrics metrics;
  ReportJobs(views, {}, nullptr, [](const std::string& uid) { return uid != "gone"; }, metrics);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("\"fresh\""));
  EXPECT_THAT(text, HasSubstr("\"trains\""));
  EXPECT_THAT(text, Not(HasSubstr("\"gone\"")));
  EXPECT_THAT(text, Not(HasSubstr("\"over\"")));
  EXPECT_THAT(text, HasSubstr("phase=\"Queued\"} 1"));
  EXPECT_THAT(text, HasSubstr("phase=\"Succeeded\"} 1"));
  EXPECT_THAT(text, HasSubstr("phase=\"Failed\"} 0"));
}

TEST(JobMetrics, JobsAtWhichProcessesDiedAreCounted) {
  const DyingProcesses processes;
  JobTable::Views views;
  for (const char* name : {"deadly", "fine", "gone"}) {
    api::ElasticTrainingJob job = NewJob();
    job.meta.name = name;
    job.meta.uid = name;
    views.insert({{"team-a", name}, JobView{.job = Shared(job)}});
  }
  const auto reported = [&] {
    metrics::Metrics metrics;
    const auto is_there = [](const std::string& uid) { return uid != "gone"; };
    ReportJobs(views, {}, processes.Notes().get(), is_there, metrics);
    return metrics.Text();
  };
  for (const char* quarantined : {"0", "0", "1", "1"}) {
    EXPECT_THAT(reported(), HasSubstr(std::string("\npliant_jobs_quarantined ") + quarantined));
    for (const char* name : {"deadly", "gone"}) {
      processes.DieAt(views.at({"team-a", name}).job->meta);
    }
  }
}

TEST(JobMetrics, QueuesThatOnlyJobsNameHaveNoSeries) {
  const planner::ClusterSnapshot snapshot{
      .queues = {{.name = "research", .pool = "a100", .guaranteed_gpus = 8}}};
  const planner::Plan plan{.queues = {{.queue = "research",
                                       .pool = "a100",
                                       .demand = 6,
                                       .entitled = 5,
                                       .allocated = 4,
                                       .borrowed = 3,
                                       .lent = 2,
                                       .running = 7,
                                       .waiting = 1},
                                      {.queue = "invented", .pool = "default"}},
                           .pools = {{.pool = "a100", .capacity = 16, .allocated = 4, .foreign = 2},
                                     {.pool = "gone", .exists = false}}};
  metrics::Metrics metrics;
  ReportQueues(snapshot, plan, metrics);
  std::string text = metrics.Text();
  const std::string labels = "{pool=\"a100\",queue=\"research\"} ";
  for (const std::string& line :
       {"pliant_queue_guaranteed_gpus" + labels + "8\n",
        "pliant_queue_demand_gpus" + labels + "6\n", "pliant_queue_entitled_gpus" + labels + "5\n",
        "pliant_queue_allocated_gpus" + labels + "4\n",
        "pliant_queue_borrowed_gpus" + labels + "3\n", "pliant_queue_lent_gpus" + labels + "2\n",
        std::string("{pool=\"a100\",queue=\"research\",state=\"running\"} 7\n"),
        std::string("{pool=\"a100\",queue=\"research\",state=\"waiting\"} 1\n"),
        std::string("pliant_pool_capacity_gpus{pool=\"a100\"} 16\n"),
        std::string("pliant_pool_allocated_gpus{pool=\"a100\"} 4\n"),
        std::string("pliant_pool_foreign_gpus{pool=\"a100\"} 2\n")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("\"invented\"")));
  EXPECT_THAT(text, Not(HasSubstr("\"gone\"")));
  ReportQueues({}, {}, metrics);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("\"research\"")));
}

}  // namespace
}  // namespace pliant::controller
