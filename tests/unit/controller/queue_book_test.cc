#include "operator/controller/model/queue_book.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/feasibility.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

std::shared_ptr<const api::TrainingQueue> Queue(const std::string& name,
                                                api::TrainingQueueSpec spec = {}) {
  api::TrainingQueue queue{.spec = std::move(spec)};
  queue.meta.name = name;
  queue.meta.uid = "uid-" + name;
  return std::make_shared<const api::TrainingQueue>(std::move(queue));
}

std::shared_ptr<const api::GpuPool> Pool(const std::string& name, api::GpuPoolSpec spec = {},
                                         double created = 0) {
  api::GpuPool pool{.spec = std::move(spec)};
  pool.meta.name = name;
  pool.meta.uid = "uid-" + name;
  pool.meta.created = At(created);
  return std::make_shared<const api::GpuPool>(std::move(pool));
}

std::shared_ptr<const api::Namespace> Namespace(const std::string& name,
                                                std::map<std::string, std::string> labels) {
  api::Namespace name_space;
  name_space.meta.name = name;
  name_space.meta.labels = std::move(labels);
  return std::make_shared<const api::Namespace>(std::move(name_space));
}

JobInQueue Applied(const QueueBook& book, const std::function<void(api::JobSpec&)>& edit) {
  api::ElasticTrainingJob job = AdmittedJob(2);
  edit(job.spec);
  return book.Apply(std::make_shared<const api::ElasticTrainingJob>(std::move(job)));
}

api::LabelSelector Labelled(const std::string& key, const std::string& value) {
  return {.match_labels = {{key, value}}};
}

struct LimitCase {
  std::string name;
  std::function<void(api::JobSpec&)> asks;
  std::string limited;
  std::function<bool(const api::JobSpec&)> gets;
};

const LimitCase kLimits[] = {
    {"as much as is allowed",
     [](api::JobSpec& spec) {
       spec.resize = {seconds(50), seconds(600), seconds(20)};
       spec.priority_asked = 8000;
     },
     "",
     [](const api::JobSpec& spec) {
       return spec.resize == api::ResizeSpec{seconds(50), seconds(600), seconds(20)} &&
              spec.priority == 8000;
     }},
    {"more of one",
     [](api::JobSpec& spec) { spec.resize = {seconds(5), seconds(601), seconds(0)}; },
     "resize.minRuntimeSeconds counts as 600, not as 601: more is not allowed in pool fast",
     [](const api::JobSpec& spec) { return spec.resize.min_runtime == seconds(600); }},
    {"more of two",
     [](api::JobSpec& spec) { spec.resize = {seconds(3585), seconds(0), seconds(3600)}; },
     "resize.gracePeriodSeconds counts as 50, not as 3585: more is not allowed in pool fast; "
     "resize.cooldownSeconds counts as 20, not as 3600: more is not allowed in pool fast",
     [](const api::JobSpec& spec) {
       return spec.resize.grace_period == seconds(50) && spec.resize.cooldown == seconds(20);
     }},
    {"a priority above the queue's", [](api::JobSpec& spec) { spec.priority_asked = 9000; },
     "priority counts as 8000, not as 9000: more is not allowed in queue research",
     [](const api::JobSpec& spec) { return spec.priority == 8000; }},
    {"no priority", [](api::JobSpec& spec) { spec.priority_asked.reset(); }, "",
     [](const api::JobSpec& spec) { return spec.priority == 100; }},
    {"more GPUs",
     [](api::JobSpec& spec) {
       spec.elastic = {.min_learners = 1, .max_learners = 8, .gpus_per_learner = 2};
     },
     "elastic.maxLearners counts as 3, not as 8: more is not allowed in pool fast",
     [](const api::JobSpec& spec) { return spec.elastic.max_learners == 3; }},
};

TEST(QueueBook, ReducesWhatAJobAsksForToWhatItsQueueAndPoolAllow) {
  QueueBook book;
  book.SetPool("fast", Pool("fast", {.bounds = {.max_resize = {.grace_period = seconds(50),
                                                               .min_runtime = seconds(600),
                                                               .cooldown = seconds(20)},
                                                .max_gpus_per_job = 6}}));
  book.SetQueue("research",
                Queue("research", {.pool = "fast", .priority = {.fallback = 100, .max = 8000}}));
  for (const LimitCase& each : kLimits) {
    SCOPED_TRACE(each.name);
    const JobInQueue result = Applied(book, [&](api::JobSpec& spec) {
      spec.queue = "research";
      spec.resize = {.grace_period = seconds(5), .cooldown = seconds(5)};
      spec.elastic.max_learners = 2;
      each.asks(spec);
    });
    EXPECT_EQ(result.job->spec.limited, each.limited);
    EXPECT_TRUE(each.gets(result.job->spec));
    EXPECT_EQ(result.membership.pool, "fast");
    EXPECT_EQ(result.membership.refusal, "");
  }
}

TEST(QueueBook, AJobThatAsksForNoCooldownHasTheOneOfItsQueuesPolicy) {
  QueueBook book;
  book.SetQueue("fair", Queue("fair", {}));
  book.SetQueue("fast", Queue("fast", {.policy = api::QueuePolicy::kThroughput}));
  const auto cooldown = [&](const std::string& queue, std::optional<seconds> asked) {
    return Applied(book,
                   [&](api::JobSpec& spec) {
                     spec.queue = queue;
                     spec.cooldown_asked = asked;
                     if (asked) spec.resize.cooldown = *asked;
                   })
        .job->spec.resize.cooldown;
  };
  EXPECT_EQ(cooldown("fair", std::nullopt), seconds(30));
  EXPECT_EQ(cooldown("fair", seconds(7)), seconds(7));
  EXPECT_EQ(cooldown("fast", std::nullopt), seconds(0));
  EXPECT_EQ(cooldown("fast", seconds(7)), seconds(7));
}

TEST(QueueBook, AJobUsesTheResourceOfItsPool) {
  QueueBook book;
  book.SetPool("mig", Pool("mig", {.resource_name = "nvidia.com/mig-1g.10gb"}));
  book.SetPool("plain", Pool("plain", {.resource_name = "nvidia.com/gpu"}));
  book.SetQueue("small", Queue("small", {.pool = "mig"}));
  book.SetQueue("large", Queue("large", {.pool = "plain"}));
  const auto resource = [&](const std::string& queue) {
    return Applied(book, [&](api::JobSpec& spec) { spec.queue = queue; }).job->spec.gpu_resource;
  };
  EXPECT_EQ(resource("small"), "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(resource("large"), "") << "it is the operator's";
  EXPECT_EQ(resource("default"), "");
  EXPECT_EQ(book.ResourceOf("mig"), "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(book.ResourceOf("unknown"), "");
  EXPECT_EQ(book.PoolViews().at(0).resource, "nvidia.com/mig-1g.10gb");
  // A job whose queue was deleted stays in its pool.
  auto job = std::make_shared<api::ElasticTrainingJob>(AdmittedJob(2));
  job->spec.queue = "gone";
  const JobInQueue stays = book.Apply(job, "mig");
  EXPECT_EQ(stays.membership.pool, "mig");
  EXPECT_EQ(stays.job->spec.gpu_resource, "nvidia.com/mig-1g.10gb");
}

TEST(QueueBook, AJobWithinItsLimitsIsNotCopied) {
  const QueueBook book;
  const auto job = std::make_shared<const api::ElasticTrainingJob>(AdmittedJob(2));
  EXPECT_EQ(book.Apply(job).job, job);
}

TEST(QueueBook, SaysWhyAQueueDoesNotAdmitAJob) {
  QueueBook book;
  book.SetPool("small", Pool("small", {.bounds = {.max_gpus_per_job = 2}}));
  book.SetQueue("research", Queue("research", {.namespace_selector = Labelled("team", "a")}));
  book.SetQueue("small", Queue("small", {.pool = "small"}));
  const auto refusal = [&](const std::string& queue, int min_learners = 1) {
    return Applied(book,
                   [&](api::JobSpec& spec) {
                     spec.queue = queue;
                     spec.elastic.min_learners = min_learners;
                   })
        .membership.refusal;
  };
  EXPECT_EQ(refusal("default"), "");
  EXPECT_EQ(refusal("unknown"), "") << "the planner says so";
  EXPECT_EQ(refusal("research"),
            "namespace team-a may not use queue research: its namespaceSelector does not match");
  EXPECT_TRUE(book.SetNamespace("team-a", Namespace("team-a", {{"team", "a"}})));
  EXPECT_EQ(refusal("research"), "");
  EXPECT_EQ(refusal("small", 2), "");
  EXPECT_EQ(refusal("small", 3),
            "elastic.minLearners x gpusPerLearner is 3 GPUs: pool small allows a job 2 "
            "(bounds.gpusPerJob)");
}

TEST(QueueBook, WithoutRightsThereIsOneQueue) {
  const QueueBook book(QueueRights::kNone);
  const auto refusal = [&](const std::string& queue) {
    return Applied(book, [&](api::JobSpec& spec) { spec.queue = queue; }).membership.refusal;
  };
  EXPECT_EQ(refusal("default"), "");
  EXPECT_THAT(refusal("research"), testing::HasSubstr("spec.queue must be default"));
}

TEST(QueueBook, ANodeBelongsToTheOldestPoolWhoseSelectorMatches) {
  QueueBook book;
  const std::map<std::string, std::string> a100{{"gpu", "a100"}};
  EXPECT_EQ(book.PoolOf(a100), "default");
  book.SetPool("young", Pool("young", {.node_selector = Labelled("gpu", "a100")}, 20));
  book.SetPool("old", Pool("old", {.node_selector = Labelled("gpu", "a100")}, 10));
  EXPECT_EQ(book.PoolOf(a100), "old");
  EXPECT_TRUE(book.IsContested("young", a100));
  EXPECT_FALSE(book.IsContested("old", a100));
  EXPECT_EQ(book.PoolOf({}), "default") << "the built-in pool has the rest";
  book.SetPool("rest", Pool("rest", {}, 30));
  EXPECT_EQ(book.PoolOf({}), "rest");
  EXPECT_FALSE(book.IsContested("rest", a100)) << "it asks for the rest only";
  book.SetPool("default", Pool("default", {.node_selector = Labelled("gpu", "v100")}, 40));
  book.SetPool("rest", nullptr);
  EXPECT_EQ(book.PoolOf({}), "") << "no pool wants it";
  book.SetPool("old", nullptr);
  EXPECT_EQ(book.PoolOf(a100), "young");
}

TEST(QueueBook, TheBuiltInQueueAndPoolExistUntilObjectsDefineThem) {
  QueueBook book;
  EXPECT_EQ(book.QueueViews(), (std::vector<planner::QueueView>{{}}));
  EXPECT_EQ(book.PoolViews(), (std::vector<planner::PoolView>{{}}));
  book.SetQueue("default",
                Queue("default", {.weight = 7, .limit = 3, .stop = api::QueueStop::kHold}));
  book.SetPool("default", Pool("default", {.reserved_gpus = 2}));
  EXPECT_EQ(book.QueueViews(),
            (std::vector<planner::QueueView>{
                {.weight = 7, .limit_gpus = 3, .stop = planner::QueueStop::kHold}}));
  EXPECT_EQ(book.PoolViews(), (std::vector<planner::PoolView>{{.reserved_gpus = 2}}));
}

TEST(QueueBook, OnlyWhatMattersIsAChange) {
  QueueBook book;
  EXPECT_TRUE(book.SetQueue("q", Queue("q")));
  const std::uint64_t version = book.version();
  api::TrainingQueue with_status = *Queue("q");
  with_status.status.waiting = 3;
  EXPECT_FALSE(book.SetQueue("q", std::make_shared<const api::TrainingQueue>(with_status)));
  EXPECT_EQ(book.queues().at("q")->status.waiting, 3) << "it is kept for the next comparison";
  EXPECT_FALSE(book.SetNamespace("a", nullptr));
  EXPECT_TRUE(book.SetNamespace("a", Namespace("a", {{"x", "y"}})));
  EXPECT_FALSE(book.SetNamespace("a", Namespace("a", {{"x", "y"}})));
  EXPECT_EQ(book.version(), version + 1);
  EXPECT_TRUE(book.SetQueue("q", Queue("q", {.weight = 9})));
  EXPECT_TRUE(book.SetQueue("q", nullptr));
}

TEST(QueueBook, AQueueThatIsNotUnderstoodKeepsItsLastSpec) {
  QueueBook book;
  book.SetQueue("q", Queue("q", {.weight = 9}));
  api::TrainingQueue unreadable = *Queue("q");
  unreadable.unreadable = "spec.weight: not a number";
  EXPECT_TRUE(book.SetQueue("q", std::make_shared<const api::TrainingQueue>(unreadable)));
  EXPECT_FALSE(book.SetQueue("q", std::make_shared<const api::TrainingQueue>(unreadable)));
  EXPECT_EQ(book.QueueViews().at(0).weight, 9);
  unreadable.meta.name = "other";
  book.SetQueue("other", std::make_shared<const api::TrainingQueue>(unreadable));
  EXPECT_EQ(book.QueueViews().size(), 2u) << "a queue that was never understood admits nothing";
}

// Nodes with these labels would join the pool if they were added.
TEST(QueueBook, TermsOfAPoolAreItsNodes) {
  QueueBook book;
  EXPECT_EQ(book.TermsOfPool("default"), NodeTerms{});
  book.SetPool("a100", Pool("a100", {.node_selector = Labelled("gpu", "a100")}, 1));
  book.SetPool("vision", Pool("vision", {.node_selector = Labelled("team", "vision")}, 2));
  const std::map<std::string, std::string> nodes[] = {
      {}, {{"gpu", "a100"}}, {{"team", "vision"}}, {{"gpu", "a100"}, {"team", "vision"}}};
  for (const std::string pool : {"a100", "vision", "default"}) {
    for (const auto& labels : nodes) {
      const bool has =
          planner::ObstacleInLooks({.labels = labels}, {.node_affinity = book.TermsOfPool(pool)}) ==
          planner::Obstacle::kNone;
      EXPECT_EQ(has, book.PoolOf(labels) == pool) << pool;
    }
  }
}

}  // namespace
}  // namespace pliant::controller
