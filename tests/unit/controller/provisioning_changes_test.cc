#include "operator/controller/rounds/provisioning_changes.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using GoneRequest = ProvisioningChanges::Gone;

RequestedNodes Requested(const std::string& job, int learners) {
  return {.job = {.name_space = "team-a", .name = job, .uid = job},
          .learners = learners,
          .needs = {.resources = {.gpus = 2}}};
}

ProvisioningState Present(const std::string& job, int learners, double created,
                          const std::string& over = "") {
  const std::string name = ProvisioningRequestName(Requested(job, learners));
  return {.name = name, .uid = "u", .job_uid = job, .created = At(created), .over = over};
}

TEST(ProvisioningChanges, OneRequestForEachJob) {
  const std::vector<RequestedNodes> wanted = {Requested("a", 2), Requested("b", 1)};
  const auto changes =
      ChangeProvisioningRequests(wanted, {{Present("a", 2, 0), Present("c", 1, 0)}}, At(100));
  EXPECT_THAT(changes.create, ElementsAre(&wanted[1]));
  EXPECT_THAT(changes.remove, ElementsAre(GoneRequest{Present("c", 1, 0).name, "u"}));
  EXPECT_EQ(changes.look_again, std::nullopt);
}

TEST(ProvisioningChanges, ARequestThatNoLongerFitsIsReplacedAfterAWhile) {
  const std::vector<RequestedNodes> wanted = {Requested("a", 3)};
  const ProvisioningState present[] = {Present("a", 2, 50)};
  const auto early = ChangeProvisioningRequests(wanted, present, At(100));
  EXPECT_THAT(early.create, IsEmpty());
  EXPECT_THAT(early.remove, IsEmpty());
  EXPECT_EQ(early.look_again, At(110));
  const auto late = ChangeProvisioningRequests(wanted, present, At(110));
  EXPECT_THAT(late.create, ElementsAre(&wanted[0]));
  EXPECT_THAT(late.remove, ElementsAre(GoneRequest{present[0].name, "u"}));
}

TEST(ProvisioningChanges, AFailedRequestIsRepeatedAfterAWhile) {
  const std::vector<RequestedNodes> wanted = {Requested("a", 2)};
  const ProvisioningState present[] = {Present("a", 2, 0, "Failed: no quota")};
  EXPECT_EQ(ChangeProvisioningRequests(wanted, present, At(100)).look_again, At(120));
  const auto late = ChangeProvisioningRequests(wanted, present, At(120));
  EXPECT_THAT(late.remove, ElementsAre(GoneRequest{present[0].name, "u"}));
  EXPECT_THAT(late.create, IsEmpty()) << "its name is free once it has gone";
}

TEST(ProvisioningChanges, TheServersClockMayBeAhead) {
  const ProvisioningState present[] = {Present("a", 2, 5000, "Failed: no quota")};
  EXPECT_EQ(ChangeProvisioningRequests({{Requested("a", 2)}}, present, At(100)).look_again,
            At(220));
}

TEST(ProvisioningRequest, IsOfClusterAutoscalersSchema) {
  const PlaceholderDefaults defaults{.ns = "pliant-system", .image = "pliant:1"};
  const RequestedNodes nodes = Requested("1a2b", 3);
  const std::string name = ProvisioningRequestName(nodes);
  const json request = ProvisioningRequest(nodes, defaults);
  EXPECT_EQ(request.at("apiVersion"), "autoscaling.x-k8s.io/v1");
  EXPECT_EQ(request.at("kind"), "ProvisioningRequest");
  EXPECT_EQ(request.at("/metadata/name"_json_pointer), name);
  EXPECT_EQ(request.at("/metadata/namespace"_json_pointer), "pliant-system");
  EXPECT_EQ(request.at("spec"), json::parse(R"({
    "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
    "podSets": [{"count": 3, "podTemplateRef": {"name": ")" +
                                            name + R"("}}]})"));
  const json pods = ProvisioningTemplate(nodes, defaults);
  EXPECT_EQ(pods.at("kind"), "PodTemplate");
  EXPECT_EQ(pods.at("/metadata/name"_json_pointer), name);
  EXPECT_EQ(pods.at("/template/spec"_json_pointer), PlaceholderSpec(nodes, defaults));
  EXPECT_LE(name.size(), 253u);
}

TEST(ProvisioningRequest, SaysWhyItIsOver) {
  json request = ProvisioningRequest(Requested("1a2b", 3), {.ns = "pliant-system"});
  request["metadata"]["uid"] = "u";
  const auto over = [&](const std::string& type, const std::string& status) {
    request["status"]["conditions"] = json::array(
        {{{"type", type}, {"status", status}, {"reason", "R"}, {"message", "no quota"}}});
    const auto state = DecodeProvisioningRequest(request);
    EXPECT_TRUE(state) << state.error();
    EXPECT_EQ(state->job_uid, "1a2b");
    return state->over;
  };
  EXPECT_EQ(over("Accepted", "True"), "");
  EXPECT_EQ(over("Provisioned", "True"), "");
  EXPECT_EQ(over("Failed", "False"), "");
  EXPECT_EQ(over("Failed", "True"), "Failed: no quota");
  EXPECT_EQ(over("BookingExpired", "True"), "BookingExpired: no quota");
}

}  // namespace
}  // namespace pliant::controller
