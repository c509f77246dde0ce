#include "operator/controller/rounds/placeholder_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/objects/placeholder_pod.h"
#include "tests/unit/planner/builders.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using GonePlaceholder = PlaceholderChanges::Gone;

RequestedNodes Wanted(const std::string& job, int learners, std::int64_t gpus = 1) {
  return {.job = {.name_space = "team-a", .name = job, .uid = job},
          .learners = learners,
          .needs = {.resources = {.gpus = gpus}}};
}

using Pods = std::vector<std::shared_ptr<const api::Pod>>;

// A placeholder of one GPU; "": it is on no node.
std::shared_ptr<const api::Pod> Pod(const std::string& job, int number, const std::string& node,
                                    const std::function<void(api::Pod&)>& edit = {}) {
  api::Pod pod{.requests = {.gpus = 1}, .node_name = node};
  pod.meta.name = PlaceholderName(job, number);
  pod.meta.uid = "uid-" + pod.meta.name;
  pod.meta.labels = {{std::string(kLabelNodesFor), job},
                     {std::string(kLabelNeeds), HashOfNeeds(Wanted(job, 1))}};
  if (edit) edit(pod);
  return std::make_shared<const api::Pod>(std::move(pod));
}

GonePlaceholder GonePod(const std::string& job, int number) {
  const std::string name = PlaceholderName(job, number);
  return {name, "uid-" + name};
}

std::vector<int> NumbersOf(const PlaceholderChanges& changes) {
  std::vector<int> numbers;
  for (const auto& create : changes.create) numbers.push_back(create.number);
  return numbers;
}

PlaceholderChanges Change(const std::vector<RequestedNodes>& wanted, const Pods& present,
                          const planner::World& world = planner::World(planner::Nodes(1, 4))) {
  const planner::Plan plan = world.MakePlan();
  return ChangePlaceholders(wanted, present, {world.snapshot, plan});
}

TEST(PlaceholderChanges, CreatesWhatIsMissingWithFreeNumbers) {
  const std::vector<RequestedNodes> wanted = {Wanted("a", 3)};
  EXPECT_THAT(NumbersOf(Change(wanted, {})), ElementsAre(0, 1, 2));
  EXPECT_THAT(NumbersOf(Change(wanted, {Pod("a", 1, "")})), ElementsAre(0, 2));
  const auto deleted = [](api::Pod& pod) { pod.meta.deleted = api::WallTime{}; };
  EXPECT_THAT(NumbersOf(Change(wanted, {Pod("a", 0, "", deleted)})), ElementsAre(1, 2, 3))
      << "its name is free once it has gone";
  EXPECT_EQ(Change(wanted, {Pod("a", 0, ""), Pod("a", 1, ""), Pod("a", 2, "n00")}),
            PlaceholderChanges{});
}

TEST(PlaceholderChanges, RemovesWhatNobodyWants) {
  EXPECT_THAT(Change({}, {Pod("a", 0, "")}).remove, ElementsAre(GonePod("a", 0)));
  EXPECT_THAT(Change({Wanted("b", 1)}, {Pod("a", 0, "n00"), Pod("b", 0, "n00")}).remove,
              ElementsAre(GonePod("a", 0)));
}

TEST(PlaceholderChanges, RemovesThoseFirstForWhichNoNodeHasCome) {
  const auto changes =
      Change({Wanted("a", 1)}, {Pod("a", 0, ""), Pod("a", 1, "n00"), Pod("a", 2, "")});
  EXPECT_THAT(changes.remove, ElementsAre(GonePod("a", 0), GonePod("a", 2)));
  EXPECT_THAT(changes.create, IsEmpty());
}

TEST(PlaceholderChanges, ReplacesThoseThatEndedOrHaveOtherNeeds) {
  const auto ended = [](api::Pod& pod) { pod.phase = api::PodPhase::kFailed; };
  const auto changes = Change({Wanted("a", 1)}, {Pod("a", 0, "n00", ended)});
  EXPECT_THAT(changes.remove, ElementsAre(GonePod("a", 0)));
  EXPECT_THAT(NumbersOf(changes), ElementsAre(1));
  const auto just_ended = [](api::Pod& pod) {
    pod.phase = api::PodPhase::kFailed;
    pod.meta.created = planner::kStart - std::chrono::seconds(20);
  };
  const auto rests = Change({Wanted("a", 1)}, {Pod("a", 0, "n00", just_ended)});
  EXPECT_THAT(rests.remove, IsEmpty());
  EXPECT_THAT(rests.create, IsEmpty()) << "the node would refuse the next one, too";
  EXPECT_EQ(rests.look_again, planner::kStart + std::chrono::seconds(40));
  EXPECT_THAT(Change({Wanted("a", 1, 2)}, {Pod("a", 0, "")}).remove, ElementsAre(GonePod("a", 0)));
}

// The node has four GPUs: two are used, one gets a learner, so one placeholder may stay.
TEST(PlaceholderChanges, RemovesThoseInTheWayOfLearners) {
  planner::World world(planner::Nodes(1, 4));
  world.Submit(planner::JobOf("runs", 2, 2).Has(2, "n00"));
  world.Submit(planner::JobOf("starts", 1, 1));
  const auto changes =
      Change({Wanted("a", 3)}, {Pod("a", 0, "n00"), Pod("a", 1, "n00"), Pod("a", 2, "")}, world);
  EXPECT_THAT(changes.remove, ElementsAre(GonePod("a", 1)));
  EXPECT_THAT(NumbersOf(changes), ElementsAre(3));
}

}  // namespace
}  // namespace pliant::controller
