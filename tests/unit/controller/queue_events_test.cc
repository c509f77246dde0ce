#include "operator/controller/rounds/queue_events.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

using enum api::ConditionStatus;

api::Condition Told(std::string type, api::ConditionStatus status, std::string reason) {
  return {
      .type = std::move(type), .status = status, .reason = std::move(reason), .message = "because"};
}

struct EventCase {
  std::string name;
  std::vector<api::Condition> before;
  std::vector<api::Condition> after;
  std::vector<ObjectEvent> events;
};

const api::Condition kMet = Told("GuaranteeMet", kTrue, "Met");
const api::Condition kUnmet = Told("GuaranteeMet", kFalse, "BelowGuarantee");

const EventCase kOfQueues[] = {
    {"a new queue begins well", {}, {kMet, Told("Active", kTrue, "Active")}, {}},
    {"unmet from the beginning", {}, {kUnmet}, {{true, "GuaranteeUnmet", "because"}}},
    {"unmet", {kMet}, {kUnmet}, {{true, "GuaranteeUnmet", "because"}}},
    {"still unmet", {kUnmet}, {kUnmet}, {}},
    {"met again", {kUnmet}, {kMet}, {{false, "GuaranteeMet", "because"}}},
    {"its pool is gone",
     {Told("Active", kTrue, "Active")},
     {Told("Active", kFalse, "PoolMissing")},
     {{true, "PoolMissing", "because"}}},
    {"its owner stopped it",
     {Told("Active", kTrue, "Active")},
     {Told("Active", kFalse, "Held")},
     {{false, "Held", "because"}}},
    {"its owner lets it run again",
     {Told("Active", kFalse, "Held")},
     {Told("Active", kTrue, "Active")},
     {{false, "Active", "because"}}},
};

TEST(QueueEvents, FollowFromTheConditionsOfQueues) {
  for (const EventCase& c : kOfQueues) {
    const api::TrainingQueueStatus before{.conditions = c.before};
    const api::TrainingQueueStatus after{.conditions = c.after};
    EXPECT_EQ(EventsOf(before, after), c.events) << c.name;
  }
}

const EventCase kOfPools[] = {
    {"a new pool begins well",
     {},
     {Told("Overlapping", kFalse, "Disjoint"), Told("Ready", kTrue, "NodesFound")},
     {}},
    {"overlapping",
     {Told("Overlapping", kFalse, "Disjoint")},
     {Told("Overlapping", kTrue, "NodesOfOlderPools")},
     {{true, "Overlapping", "because"}}},
    {"its nodes are gone",
     {Told("Ready", kTrue, "NodesFound")},
     {Told("Ready", kFalse, "NoNodes")},
     {{true, "NoNodes", "because"}}},
};

TEST(QueueEvents, FollowFromTheConditionsOfPools) {
  for (const EventCase& c : kOfPools) {
    const api::GpuPoolStatus before{.conditions = c.before};
    const api::GpuPoolStatus after{.conditions = c.after};
    EXPECT_EQ(EventsOf(before, after), c.events) << c.name;
  }
}

TEST(QueueEvents, AReclaimIsReportedToBothQueues) {
  const Reclaimed reclaimed{.job = "team-a/resnet",
                            .gpus = 4,
                            .from = "batch",
                            .by = "research",
                            .why = "job team-b/bert needs them"};
  const ObjectEvent lost = EventOf(reclaimed, /*is_loser=*/true);
  EXPECT_EQ(lost, (ObjectEvent{true, "Reclaimed",
                               "queue research took 4 GPUs back from job team-a/resnet of queue "
                               "batch: job team-b/bert needs them"}));
  EXPECT_FALSE(EventOf(reclaimed, /*is_loser=*/false).warning);
}

}  // namespace
}  // namespace pliant::controller
