#include "operator/api/training_queue.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"

namespace pliant::api {
namespace {

using nlohmann::json;
using std::chrono::seconds;

json QueueObject(const json& patch = json::object()) {
  json object = {{"metadata", {{"name", "research"}, {"uid", "u"}, {"generation", 2}}},
                 {"spec", {{"namespaceSelector", json::object()}}}};
  object["spec"].merge_patch(patch);
  return object;
}

TEST(TrainingQueue, FillsInDefaults) {
  const Result<TrainingQueue> queue = DecodeTrainingQueue(QueueObject());
  ASSERT_TRUE(queue) << queue.error();
  EXPECT_EQ(queue->meta.name, "research");
  EXPECT_EQ(queue->meta.generation, 2);
  EXPECT_EQ(queue->unreadable, "");
  EXPECT_EQ(queue->spec, TrainingQueueSpec{});
  EXPECT_EQ(queue->spec.pool, "default");
  EXPECT_TRUE(queue->spec.namespace_selector.empty());
  EXPECT_EQ(queue->spec.weight, 100);
  EXPECT_EQ(queue->spec.guaranteed, 0);
  EXPECT_EQ(queue->spec.limit, std::nullopt);
  EXPECT_EQ(queue->spec.lending_limit, std::nullopt);
  EXPECT_EQ(queue->spec.policy, QueuePolicy::kFairShare);
  EXPECT_EQ(queue->spec.bias, Bias::kNone);
  EXPECT_EQ(queue->spec.queueing, Queueing::kBestEffort);
  EXPECT_EQ(queue->spec.reclaim, Reclaim::kEvict);
  EXPECT_EQ(queue->spec.priority, (QueuePriority{.fallback = 5000, .max = 10000}));
  EXPECT_EQ(queue->spec.service_half_life, seconds(86400));
  EXPECT_EQ(queue->spec.stop, QueueStop::kNone);
  EXPECT_EQ(queue->status, TrainingQueueStatus{});
}

TEST(TrainingQueue, ReadsAllFields) {
  const Result<TrainingQueue> queue = DecodeTrainingQueue(QueueObject(json::parse(R"({
    "pool": "a100", "namespaceSelector": {"matchLabels": {"team": "research"}}, "weight": 300,
    "guaranteed": 16, "limit": 64, "lendingLimit": 8, "policy": "Throughput", "bias": "ShortJobs", "queueing": "Strict",
    "reclaim": "ShrinkOnly", "priority": {"default": 100, "max": 200}, "serviceHalfLifeSeconds": 3600,
    "stop": "Drain"})")));
  ASSERT_TRUE(queue) << queue.error();
  EXPECT_EQ(queue->unreadable, "");
  EXPECT_EQ(queue->spec,
            (TrainingQueueSpec{.pool = "a100",
                               .namespace_selector = {.match_labels = {{"team", "research"}},
                                                      .match_expressions = {}},
                               .weight = 300,
                               .guaranteed = 16,
                               .limit = 64,
                               .lending_limit = 8,
                               .policy = QueuePolicy::kThroughput,
                               .bias = Bias::kShortJobs,
                               .queueing = Queueing::kStrict,
                               .reclaim = Reclaim::kShrinkOnly,
                               .priority = {.fallback = 100, .max = 200},
                               .service_half_life = seconds(3600),
                               .stop = QueueStop::kDrain}));
}

TEST(TrainingQueue, EachWordIsReadAsItIsWritten) {
  const auto read = [](const char* field, std::string_view word) {
    return DecodeTrainingQueue(QueueObject({{field, word}}))->spec;
  };
  for (const QueuePolicy each : {QueuePolicy::kFairShare, QueuePolicy::kPriority,
                                 QueuePolicy::kFifo, QueuePolicy::kThroughput}) {
    EXPECT_EQ(read("policy", ToString(each)).policy, each);
  }
  for (const Bias each : {Bias::kNone, Bias::kShortJobs}) {
    EXPECT_EQ(read("bias", ToString(each)).bias, each);
  }
  for (const Queueing each : {Queueing::kBestEffort, Queueing::kStrict}) {
    EXPECT_EQ(read("queueing", ToString(each)).queueing, each);
  }
  for (const Reclaim each : {Reclaim::kEvict, Reclaim::kShrinkOnly}) {
    EXPECT_EQ(read("reclaim", ToString(each)).reclaim, each);
  }
  for (const QueueStop each : {QueueStop::kNone, QueueStop::kHold, QueueStop::kDrain}) {
    EXPECT_EQ(read("stop", ToString(each)).stop, each);
  }
}

TEST(TrainingQueue, NamesTheFieldThatIsWrong) {
  constexpr const char* kNoAmount = "not a whole number from 0 to 1000000";
  const struct {
    json spec;
    std::string unreadable;  // "": it is good
  } kCases[] = {
      {{{"pool", 1}}, "spec.pool: not a string"},
      {{{"pool", std::string(63, 'x')}}, ""},
      {{{"pool", std::string(64, 'x')}}, "spec.pool: longer than 63 bytes"},
      {{{"namespaceSelector", nullptr}}, "spec.namespaceSelector: missing"},
      {{{"namespaceSelector", "all"}}, "spec.namespaceSelector: not an object"},
      {{{"namespaceSelector", {{"matchLabels", {{"a", 1}}}}}},
       "spec.namespaceSelector.matchLabels: not an object of at most 32 strings"},
      {{{"weight", 0}}, "spec.weight: not a whole number from 1 to 10000"},
      {{{"weight", 1}}, ""},
      {{{"weight", 10000}}, ""},
      {{{"weight", 10001}}, "spec.weight: not a whole number from 1 to 10000"},
      {{{"weight", 0.5}}, "spec.weight: not a whole number from 1 to 10000"},
      {{{"guaranteed", -1}}, Format("spec.guaranteed: {}", kNoAmount)},
      {{{"guaranteed", 1'000'000}}, ""},
      {{{"guaranteed", 1'000'001}}, Format("spec.guaranteed: {}", kNoAmount)},
      {{{"limit", -1}}, Format("spec.limit: {}", kNoAmount)},
      {{{"limit", 0}}, ""},
      {{{"limit", 1'000'001}}, Format("spec.limit: {}", kNoAmount)},
      {{{"guaranteed", 8}, {"limit", 8}}, ""},
      {{{"guaranteed", 8}, {"limit", 7}}, "spec.guaranteed: greater than limit"},
      {{{"lendingLimit", -1}}, Format("spec.lendingLimit: {}", kNoAmount)},
      {{{"lendingLimit", 0}}, ""},
      {{{"lendingLimit", 1}}, "spec.lendingLimit: greater than guaranteed"},
      {{{"guaranteed", 8}, {"lendingLimit", 8}}, ""},
      {{{"guaranteed", 8}, {"lendingLimit", 9}}, "spec.lendingLimit: greater than guaranteed"},
      {{{"policy", "Fair"}}, "spec.policy: none of FairShare, Priority, Fifo, Throughput"},
      {{{"bias", "Long"}}, "spec.bias: none of None, ShortJobs"},
      {{{"policy", 1}}, "spec.policy: not a string"},
      {{{"queueing", "strict"}}, "spec.queueing: none of BestEffort, Strict"},
      {{{"reclaim", ""}}, "spec.reclaim: none of Evict, ShrinkOnly"},
      {{{"stop", "Yes"}}, "spec.stop: none of None, Hold, Drain"},
      {{{"priority", 5}}, "spec.priority: not an object"},
      {{{"priority", {{"default", 0}}}},
       "spec.priority.default: not a whole number from 1 to 10000"},
      {{{"priority", {{"max", 10001}}}}, "spec.priority.max: not a whole number from 1 to 10000"},
      {{{"priority", {{"max", 5000}}}}, ""},
      {{{"priority", {{"max", 4999}}}}, "spec.priority.default: greater than max"},
      {{{"serviceHalfLifeSeconds", 59}},
       "spec.serviceHalfLifeSeconds: not a whole number from 60 to 31536000"},
      {{{"serviceHalfLifeSeconds", 31'536'000}}, ""},
      {{{"serviceHalfLifeSeconds", 31'536'001}},
       "spec.serviceHalfLifeSeconds: not a whole number from 60 to 31536000"},
  };
  for (const auto& c : kCases) {
    const Result<TrainingQueue> queue = DecodeTrainingQueue(QueueObject(c.spec));
    ASSERT_TRUE(queue) << queue.error();
    EXPECT_EQ(queue->unreadable, c.unreadable) << c.spec;
    EXPECT_EQ(queue->meta.uid, "u");
  }
}

TrainingQueueStatus FullQueueStatus() {
  return {.observed_generation = 3,
          .demand = 40,
          .entitled = 24,
          .allocated = 20,
          .borrowed = 4,
          .lent = 1,
          .waiting = 2,
          .running = 5,
          .reason = "20 of 32 GPUs",
          .conditions = {{.type = "Active",
                          .status = ConditionStatus::kTrue,
                          .reason = "Active",
                          .message = "m",
                          .last_transition = WallTime(seconds(5)),
                          .observed_generation = 3}}};
}

TEST(TrainingQueue, StatusReadsBackAsWritten) {
  json object = QueueObject();
  // The second patch removes what the first wrote.
  for (const TrainingQueueStatus& status : {FullQueueStatus(), TrainingQueueStatus{}}) {
    object.merge_patch({{"status", EncodeStatus(status)}});
    const Result<TrainingQueue> queue = DecodeTrainingQueue(object);
    ASSERT_TRUE(queue) << queue.error();
    EXPECT_EQ(queue->status, status);
  }
}

// It only reports.
TEST(TrainingQueue, AnInvalidStatusIsIgnored) {
  json object = QueueObject();
  object["status"] = {{"waiting", "two"}};
  const Result<TrainingQueue> queue = DecodeTrainingQueue(object);
  ASSERT_TRUE(queue) << queue.error();
  EXPECT_EQ(queue->unreadable, "");
  EXPECT_EQ(queue->status.waiting, 0);
}

}  // namespace
}  // namespace pliant::api
