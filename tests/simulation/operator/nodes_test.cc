// Pools whose jobs make a node autoscaler add nodes. At first there are two nodes of four GPUs.
#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kube/kinds.h"
#include "tests/simulation/operator/autoscaler.h"
#include "tests/simulation/operator/objects.h"
#include "tests/simulation/operator/sized_story.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;
using controller::kGpuPools;
using testing::HasSubstr;

class NodeStory : public SizedStory {
 protected:
  void ScaleUp() { world.Apply(kGpuPools, "default", {{"scaleUp", "Minimum"}}); }
  void StartAutoscaler() {
    autoscaler = std::make_unique<Autoscaler>(world.loop, world.server, world.cluster, 4);
  }
  int Placeholders(const std::function<bool(const Json& pod)>& counts = {}) const {
    int count = 0;
    for (const auto& [path, pod] : world.server.All(kPods)) {
      if (IsPlaceholder(*pod) && (!counts || counts(*pod))) ++count;
    }
    return count;
  }
  int RequestedGpus() { return world.StatusOf(kGpuPools, "default").value("requestedGpus", -1); }

  std::unique_ptr<Autoscaler> autoscaler;
};

TEST_F(NodeStory, AJobWhoseMinimumFitsNoNodeMakesAnAutoscalerAddOne) {
  ScaleUp();
  StartAutoscaler();
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("second", 2, 8);
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 2; }));
  EXPECT_TRUE(world.Reach([&] { return RequestedGpus() == 2; }));
  EXPECT_TRUE(world.Reach([&] {
    return world.Status("second").value("reason", "").find("nodes for 2 learners are requested") !=
           std::string::npos;
  })) << world.Status("second");
  ASSERT_TRUE(world.ReachSizes({{"first", 8}, {"second", 4}})) << world.Describe();
  EXPECT_TRUE(world.Reach([&] { return Placeholders() == 0 && RequestedGpus() == 0; }));
  world.loop.RunFor(10min);
  EXPECT_EQ(autoscaler->nodes_added(), 1) << "its growth makes no node come";
  EXPECT_EQ(world.Learners("second"), 4);
}

TEST_F(NodeStory, APoolThatDoesNotScaleUpHasNoPlaceholders) {
  Submit("first", 8, 8);
  Submit("second", 2, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  world.loop.RunFor(2min);
  EXPECT_EQ(Placeholders(), 0);
}

TEST_F(NodeStory, PlaceholdersOfJobsThatNoLongerWaitAreDeleted) {
  ScaleUp();
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("deleted", 2, 2);
  Submit("suspended", 3, 3);
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 5; }));
  world.Delete("deleted");
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 3; }));
  world.Edit("suspended", {{"suspend", true}});
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 0; }));
  world.Edit("suspended", {{"suspend", false}});
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 3; }));
  world.Apply(kGpuPools, "default", {{"scaleUp", "None"}});
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 0; }));
}

// Three GPUs are idle: as many placeholders are there, and the other three make nodes come. A
// learner preempts none of them.
TEST_F(NodeStory, PlaceholdersGiveWayToLearners) {
  ScaleUp();
  Submit("first", 5, 5);
  ASSERT_TRUE(world.ReachSizes({{"first", 5}}));
  Submit("wide", 6, 6);
  ASSERT_TRUE(world.Reach([&] {
    return Placeholders([](const Json& pod) { return !NodeOf(pod).empty(); }) == 3 &&
           Placeholders(IsUnschedulable) == 3;
  }));
  Submit("small", 1, 3);
  ASSERT_TRUE(world.ReachSizes({{"first", 5}, {"small", 3}}));
  EXPECT_TRUE(world.Reach([&] { return Placeholders() == 4; })) << "small yields two GPUs";
  world.trainings.Complete("first");
  ASSERT_TRUE(world.ReachSizes({{"small", 2}, {"wide", 6}}));
  EXPECT_TRUE(world.Reach([&] { return Placeholders() == 0; }));
}

TEST_F(NodeStory, AKilledOperatorForgetsNoPlaceholder) {
  ScaleUp();
  StartAutoscaler();
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("second", 4, 4);
  ASSERT_TRUE(world.Reach([&] { return Placeholders() > 0; }));
  world.KillOperator();
  ASSERT_TRUE(world.ReachSizes({{"first", 8}, {"second", 4}}));
  EXPECT_TRUE(world.Reach([&] { return Placeholders() == 0; }));
  EXPECT_EQ(autoscaler->nodes_added(), 1);
}

class PendingPodStory : public NodeStory {
 protected:
  void Yield(bool yields) { world.Apply(kGpuPools, "default", {{"yieldToPending", yields}}); }
  // A pod of another workload.
  void CreatePod(const std::string& name, int gpus) {
    Json container = {{"name", "main"}};
    container["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
    container["resources"]["requests"] = container["resources"]["limits"];
    world.server.Put(PathOfPod(name), {{"metadata", {{"namespace", "notebooks"}, {"name", name}}},
                                       {"spec", {{"containers", Json::array({container})}}}});
  }
  void DeletePod(const std::string& name) { world.server.Remove(PathOfPod(name)); }
  bool ReachRunning(const std::string& name, Duration limit = 3min) {
    return world.RunUntil([&] { return !NodeOf(*world.server.Find(PathOfPod(name))).empty(); },
                          limit);
  }

 private:
  static std::string PathOfPod(const std::string& name) {
    return "/api/v1/namespaces/notebooks/pods/" + name;
  }
};

TEST_F(PendingPodStory, AJobShrinksForAPodThatFindsNoNode) {
  Yield(true);
  Submit("grows", 2, 8);
  ASSERT_TRUE(world.ReachSizes({{"grows", 8}}));
  CreatePod("notebook", 3);
  ASSERT_TRUE(ReachRunning("notebook")) << world.Describe();
  EXPECT_EQ(world.Learners("grows"), 5);
  DeletePod("notebook");
  ASSERT_TRUE(world.ReachSizes({{"grows", 8}}));
  EXPECT_EQ(world.Status("grows").value("restarts", 0), 0);
}

TEST_F(PendingPodStory, APoolThatDoesNotYieldKeepsItsJobs) {
  Submit("grows", 2, 8);
  ASSERT_TRUE(world.ReachSizes({{"grows", 8}}));
  CreatePod("notebook", 3);
  EXPECT_FALSE(ReachRunning("notebook", 5min));
  EXPECT_EQ(world.Learners("grows"), 8);
  Yield(true);
  EXPECT_TRUE(ReachRunning("notebook"));
}

// Neither six GPUs on one node nor three can be had: the job keeps its minimum of six.
TEST_F(PendingPodStory, NoJobShrinksInVain) {
  Yield(true);
  Submit("keeps", 6, 8);
  ASSERT_TRUE(world.ReachSizes({{"keeps", 8}}));
  CreatePod("wide", 6);
  CreatePod("long", 3);
  EXPECT_FALSE(ReachRunning("wide", 30min));
  EXPECT_EQ(world.Learners("keeps"), 8);
  CreatePod("short", 2);
  EXPECT_TRUE(ReachRunning("short")) << world.Describe();
  EXPECT_EQ(world.Learners("keeps"), 6);
}

TEST_F(PendingPodStory, AKilledOperatorYieldsToo) {
  Yield(true);
  Submit("grows", 2, 8);
  ASSERT_TRUE(world.ReachSizes({{"grows", 8}}));
  CreatePod("notebook", 3);
  world.KillOperator();
  ASSERT_TRUE(ReachRunning("notebook"));
  EXPECT_TRUE(ReachLearners("grows", 5));
}

class ProvisioningStory : public NodeStory {
 protected:
  void SetUp() override {
    world.server.Put(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
        "provisioningrequests.autoscaling.x-k8s.io",
        kube::ProvisioningRequestDefinition());
    world.node_requests = controller::NodeRequestKind::kProvisioning;
    world.KillOperator();
    ScaleUp();
  }
  std::size_t Requests() const { return world.server.All(kProvisioningRequests).size(); }
  std::size_t Templates() const { return world.server.All("/api/v1/podtemplates").size(); }
};

TEST_F(ProvisioningStory, AJobWhoseMinimumFitsNoNodeGetsAllNodesAtOnce) {
  ClusterAutoscaler provisions(world.loop, world.server, world.cluster, 4, /*failures=*/0);
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("second", 6, 8);
  ASSERT_TRUE(world.Reach([&] { return Requests() == 1; }));
  EXPECT_EQ(Placeholders(), 0);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}, {"second", 8}})) << world.Describe();
  EXPECT_TRUE(world.Reach([&] { return Requests() == 0 && Templates() == 0; }));
  EXPECT_EQ(provisions.nodes_added(), 2);
}

TEST_F(ProvisioningStory, AFailedRequestIsRepeated) {
  ClusterAutoscaler provisions(world.loop, world.server, world.cluster, 4, /*failures=*/2);
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("second", 2, 4);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}, {"second", 4}})) << world.Describe();
  EXPECT_EQ(provisions.nodes_added(), 1);
}

TEST_F(ProvisioningStory, RequestsOfJobsThatNoLongerWaitAreDeleted) {
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("deleted", 2, 2);
  ASSERT_TRUE(world.Reach([&] { return Requests() == 1 && Templates() == 1; }));
  world.KillOperator();
  world.Delete("deleted");
  ASSERT_TRUE(world.Reach([&] { return Requests() == 0 && Templates() == 0; }));
}

// Placeholders from before the setting was changed are removed.
TEST_F(NodeStory, TheKindOfRequestMayChange) {
  ScaleUp();
  Submit("first", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"first", 8}}));
  Submit("second", 2, 2);
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 2; }));
  world.node_requests = controller::NodeRequestKind::kProvisioning;
  world.KillOperator();
  ASSERT_TRUE(world.Reach([&] { return Placeholders() == 0; }))
      << "although the server has no ProvisioningRequests";
}

}  // namespace
}  // namespace pliant::operator_sim
