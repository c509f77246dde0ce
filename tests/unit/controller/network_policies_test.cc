#include "operator/controller/objects/network_policies.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

json SpecOf(const std::string& role, const JobNetwork& network) {
  json spec;
  for (const json& policy : NetworkPolicies(NewJob().meta, "service", network)) {
    EXPECT_EQ(policy.at("/metadata/name"_json_pointer),
              "digits-1a2b3-" +
                  policy.at("/metadata/labels/pliant.dev~1role"_json_pointer).get<std::string>());
    EXPECT_EQ(policy.at("/metadata/ownerReferences/0/uid"_json_pointer), "service");
    EXPECT_EQ(policy.at("/spec/podSelector/matchLabels/pliant.dev~1job-uid"_json_pointer),
              "1a2b3c4d-0000");
    if (policy.at("/spec/podSelector/matchLabels/pliant.dev~1role"_json_pointer) == role) {
      spec = policy.at("spec");
    }
  }
  EXPECT_TRUE(spec.is_object()) << "no policy selects " << role;
  return spec;
}

const json kLearners = json::parse(R"(
    {"podSelector": {"matchLabels": {"pliant.dev/job-uid": "1a2b3c4d-0000", "pliant.dev/role": "learner"}}})");
const json kOperator = json::parse(R"(
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "pliant-system"}},
     "podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "pliant",
                                     "app.kubernetes.io/component": "operator"}}})");

TEST(NetworkPolicies, CoordinatorHearsItsLearnersAndTheOperatorAndCallsNobody) {
  EXPECT_EQ(
      SpecOf("coordinator", {.operator_namespace = "pliant-system"}),
      (json{{"podSelector",
             {{"matchLabels",
               {{"pliant.dev/job-uid", "1a2b3c4d-0000"}, {"pliant.dev/role", "coordinator"}}}}},
            {"policyTypes", {"Ingress", "Egress"}},
            {"ingress",
             json::array({{{"from", json::array({kLearners, kOperator})},
                           {"ports", json::parse(R"([{"protocol": "TCP", "port": 8443}])")}}})},
            {"egress", json::array()}}));
}

TEST(NetworkPolicies, LearnersHearEachOtherAndReachEverything) {
  const json spec = SpecOf("learner", {.operator_namespace = "pliant-system"});
  EXPECT_EQ(spec.at("policyTypes"), json::parse(R"(["Ingress"])"));
  EXPECT_EQ(spec.at("ingress"), json::array({{{"from", json::array({kLearners})}}}));
  EXPECT_EQ(spec.at("egress"), nullptr);
}

TEST(NetworkPolicies, LearnersReachTheirJobAndWhatIsAllowed) {
  const json rule = json::parse(R"({"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]})");
  const json own = json::parse(
      R"({"to": [{"podSelector": {"matchLabels": {"pliant.dev/job-uid": "1a2b3c4d-0000"}}}]})");
  const struct {
    std::string allowed;
    json want;
  } cases[] = {{"[]", json::array({own})}, {json::array({rule}).dump(), json::array({rule, own})}};
  for (const auto& [allowed, want] : cases) {
    const json spec =
        SpecOf("learner", {.operator_namespace = "pliant-system", .learner_egress = allowed});
    EXPECT_EQ(spec.at("policyTypes"), json::parse(R"(["Ingress", "Egress"])")) << allowed;
    EXPECT_EQ(spec.at("egress"), want) << allowed;
  }
}

TEST(NetworkPolicies, ScrapersReachTheMetricsOfAllPodsAndNothingElse) {
  const json peers = json::parse(
      R"([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}])");
  for (const char* role : {"coordinator", "learner"}) {
    const json ingress =
        SpecOf(role, {.operator_namespace = "pliant-system", .metrics_from = peers.dump()})
            .at("ingress");
    ASSERT_EQ(ingress.size(), 2u) << role;
    EXPECT_EQ(ingress.at(1).at("from"), peers);
    EXPECT_EQ(ingress.at(1).at("ports"), json::parse(R"([{"protocol": "TCP", "port": 9090}])"));
  }
}

}  // namespace
}  // namespace pliant::controller
