// The objects for which node autoscalers add nodes are what the API server takes.
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/objects/provisioning_request.h"
#include "operator/controller/rounds/provisioning_requests.h"
#include "tests/integration/api_server.h"
#include "tests/kube/kinds.h"

namespace pliant::kube {
namespace {

using controller::kProvisioningRequests;
using nlohmann::json;
using planner::NodeOperator;

controller::RequestedNodes Nodes() {
  return {.job = {.name_space = "team-a",
                  .name = "digits",
                  .uid = "0f8fad5b-d9cb-469f-a165-70867728950e"},
          .learners = 3,
          .needs = {.resources = {.gpus = 4, .cpu_millis = 1500, .memory_bytes = 1 << 30},
                    .tolerations = {{.key = "gpu", .effect = "NoSchedule", .exists = true},
                                    {.key = "team", .value = "a"},
                                    {.exists = true}},
                    .node_selector = {{"kind", "a100"}},
                    .node_affinity = {{{"zone", NodeOperator::kIn, {"a", "b"}},
                                       {"old", NodeOperator::kDoesNotExist, {}},
                                       {"generation", NodeOperator::kGt, {"7"}}}}}};
}

class NodeRequestsTest : public ApiServerTest {
 protected:
  controller::PlaceholderDefaults Defaults() const {
    return {.ns = ns(),
            .owner_name = "operator-1",
            .owner_uid = "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            .image = "pliant/operator:1",
            .pull_secrets = {"key"}};
  }
  // "" if the server takes the object, knows all of its fields, and gives no warning that is an
  // error.
  std::string RefusalOf(const ResourceType& type, const json& object) {
    const auto made = client().Create(type, object, {.dry_run = true, .strict = true});
    return made ? "" : made.error().message;
  }
};

TEST_F(NodeRequestsTest, APlaceholderMeetsTheRestrictedPodSecurityStandard) {
  const auto labelled = client().Patch(
      kNamespaces, {"", ns()},
      {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}});
  ASSERT_TRUE(labelled) << labelled.error();
  EXPECT_EQ(RefusalOf(kPods, PlaceholderPod(Nodes(), 0, Defaults())), "");
}

TEST_F(NodeRequestsTest, AProvisioningRequestAndItsTemplateAreTaken) {
  Install(ProvisioningRequestDefinition());
  EXPECT_EQ(RefusalOf(kPodTemplates, ProvisioningTemplate(Nodes(), Defaults())), "");
  EXPECT_EQ(RefusalOf(kProvisioningRequests, ProvisioningRequest(Nodes(), Defaults())), "");
  json none = ProvisioningRequest(Nodes(), Defaults());
  none["spec"]["podSets"][0]["count"] = 0;
  EXPECT_THAT(RefusalOf(kProvisioningRequests, none), testing::HasSubstr("podSets[0].count"));
}

TEST_F(NodeRequestsTest, AProvisioningRequestIsReadAsItIsStored) {
  Install(ProvisioningRequestDefinition());
  const auto made =
      client().Create(kProvisioningRequests, ProvisioningRequest(Nodes(), Defaults()));
  ASSERT_TRUE(made) << made.error();
  const std::string name = controller::ProvisioningRequestName(Nodes());
  const auto told = client().Patch(kProvisioningRequests, Key(name), json::parse(R"({
    "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "CapacityIsNotFound",
                               "message": "no quota", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}})"),
                                   {.subresource = "status"});
  ASSERT_TRUE(told) << told.error();
  const auto page = client().List(kProvisioningRequests, ns(),
                                  {.label_selector = std::string(controller::kLabelNodesFor)});
  ASSERT_TRUE(page) << page.error();
  ASSERT_EQ(page->items.size(), 1u);
  const auto state = controller::DecodeProvisioningRequest(page->items.front());
  ASSERT_TRUE(state) << state.error();
  EXPECT_EQ(state->name, name);
  EXPECT_EQ(state->job_uid, Nodes().job.uid);
  EXPECT_EQ(state->over, "Failed: no quota");
}

}  // namespace
}  // namespace pliant::kube
