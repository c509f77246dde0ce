#include "operator/history/record.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/history/start.h"

namespace pliant::history {
namespace {

std::int64_t Number(const Values& values, Field field) {
  return std::get<std::int64_t>(values.at(field));
}
std::string Text(const Values& values, Field field) {
  return std::get<std::string>(values.at(field));
}

TEST(RecordTest, HasTheValuesOfAJob) {
  api::ElasticTrainingJob job;
  job.meta.created = kStart;
  job.spec.queue = "research";
  job.spec.elastic = {.min_learners = 2, .max_learners = 8, .gpus_per_learner = 4};
  job.status.phase = api::JobPhase::kRunning;
  job.status.learners = 3;
  job.status.gpus = 12;
  job.status.share.entitled_gpus = 10;
  job.status.share.demand_learners = 5;
  job.status.share.limited_by = "Shards";
  job.status.waiting.since = kStart;
  job.status.progress.evaluations = {{.step = 3, .loss = 0.75}, {.step = 6, .loss = 0.5}};
  job.status.reason = "it has its share";
  job.status.progress.step = 7;
  job.status.progress.loss = 0.25;
  job.status.waiting.estimated.completion = kStart + std::chrono::hours(1);
  job.status.conditions = {{.type = "HasPlace", .reason = "FairShare", .message = "m"}};
  const Values values = RecordOf(job);
  EXPECT_EQ(Text(values, Field::kQueue), "research");
  EXPECT_EQ(Text(values, Field::kPhase), "Running");
  EXPECT_EQ(Text(values, Field::kCode), "FairShare");
  EXPECT_EQ(Text(values, Field::kReason), "it has its share");
  EXPECT_EQ(Number(values, Field::kMinGpus), 8);
  EXPECT_EQ(Number(values, Field::kMaxGpus), 32);
  EXPECT_EQ(Number(values, Field::kGpus), 12);
  EXPECT_EQ(Number(values, Field::kEntitled), 10);
  EXPECT_EQ(Number(values, Field::kDemandLearners), 5);
  EXPECT_EQ(Text(values, Field::kLimitedBy), "Shards");
  EXPECT_EQ(Number(values, Field::kWaitingSince), 1'800'000'000'000);
  EXPECT_EQ(std::get<double>(values.at(Field::kTestLoss)), 0.5);
  EXPECT_EQ(Number(values, Field::kEnd), 1'800'003'600'000);
  EXPECT_EQ(std::get<double>(values.at(Field::kLoss)), 0.25);
  EXPECT_FALSE(values.contains(Field::kAccuracy));
  const Values without = WithoutStatistics(values);
  EXPECT_FALSE(without.contains(Field::kLoss));
  EXPECT_FALSE(without.contains(Field::kStep));
  EXPECT_FALSE(without.contains(Field::kEntitled));
  EXPECT_TRUE(without.contains(Field::kLimitedBy));
  EXPECT_TRUE(without.contains(Field::kGpus));
}

TEST(RecordTest, TextsAreCutAndNumbersAreFinite) {
  api::ElasticTrainingJob job;
  job.status.reason = std::string(5000, 'x');
  job.status.progress.loss = std::numeric_limits<double>::quiet_NaN();
  job.status.progress.samples_per_second = std::numeric_limits<double>::infinity();
  const Values values = RecordOf(job);
  EXPECT_EQ(Text(values, Field::kReason).size(), kMaxTextBytes);
  EXPECT_FALSE(values.contains(Field::kLoss));
  EXPECT_FALSE(values.contains(Field::kSpeed));
  const Values node =
      RecordOf(api::Node{}, "default", std::int64_t{1} << 60, std::int64_t{1} << 60);
  EXPECT_EQ(Number(node, Field::kGpus), kMaxGpusOfNode);
  EXPECT_EQ(Number(node, Field::kUsed), kMaxGpusOfNode);
}

TEST(RecordTest, HasTheValuesOfAQueueAPoolAndANode) {
  api::TrainingQueue queue;
  queue.spec.guaranteed = 8;
  queue.spec.limit = 16;
  queue.status = {.entitled = 9, .allocated = 10, .borrowed = 2, .lent = 1, .waiting = 3};
  const Values of_queue = RecordOf(queue);
  EXPECT_EQ(Number(of_queue, Field::kGuaranteed), 8);
  EXPECT_EQ(Number(of_queue, Field::kLimit), 16);
  EXPECT_EQ(Number(of_queue, Field::kEntitled), 9);
  EXPECT_EQ(Number(of_queue, Field::kAllocated), 10);
  EXPECT_EQ(Number(of_queue, Field::kBorrowed), 2);
  EXPECT_EQ(Number(of_queue, Field::kLent), 1);
  EXPECT_EQ(Number(of_queue, Field::kWaiting), 3);
  api::GpuPool pool;
  pool.spec.reserved_gpus = 1;
  pool.status = {.capacity_gpus = 16, .allocated_gpus = 10, .foreign_gpus = 2, .yielded_gpus = 3};
  const Values of_pool = RecordOf(pool);
  EXPECT_EQ(Number(of_pool, Field::kCapacity), 16);
  EXPECT_EQ(Number(of_pool, Field::kAllocated), 10);
  EXPECT_EQ(Number(of_pool, Field::kForeign), 2);
  EXPECT_EQ(Number(of_pool, Field::kYielded), 3);
  EXPECT_EQ(Number(of_pool, Field::kReserved), 1);
  api::Node node;
  node.ready = true;
  EXPECT_EQ(RecordOf(node, "default", 8, 3), (Values{{Field::kPool, std::string("default")},
                                                     {Field::kGpus, std::int64_t{8}},
                                                     {Field::kUsed, std::int64_t{3}},
                                                     {Field::kReady, std::int64_t{1}}}));
  node.unschedulable = true;
  EXPECT_FALSE(RecordOf(node, "default", 8, 3).contains(Field::kReady));
}

}  // namespace
}  // namespace pliant::history
