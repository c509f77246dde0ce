#include "operator/api/learner_template.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using nlohmann::json;

LearnerTemplate Read(const std::string& text, const std::string& volume = "{}") {
  return ReadLearnerTemplate(json::parse(text), text, volume, /*gpus_per_learner=*/2);
}

TEST(LearnerTemplate, ReadsWhatThePlannerUnderstands) {
  const LearnerTemplate read = Read(R"({"spec": {
      "nodeSelector": {"zone": "z"},
      "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "team", "value": "a", "effect": "NoSchedule"}],
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "model", "operator": "In", "values": ["h100", "h200"]}]}]}}},
      "containers": [{"name": "learner", "resources": {"requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 8}}}]}})");
  ASSERT_TRUE(read.needs) << read.error;
  EXPECT_EQ(read.needs->resources,
            (planner::Resources{.gpus = 2, .cpu_millis = 500, .memory_bytes = 1 << 30}));
  EXPECT_EQ(read.needs->node_selector, (std::map<std::string, std::string>{{"zone", "z"}}));
  EXPECT_EQ(read.needs->tolerations, (std::vector<planner::Toleration>{
                                         {.key = "gpu", .exists = true},
                                         {.key = "team", .value = "a", .effect = "NoSchedule"}}));
  ASSERT_EQ(read.needs->node_affinity.size(), 1u);
  EXPECT_EQ(read.needs->node_affinity[0],
            (std::vector<planner::NodeRequirement>{
                {.key = "model", .op = planner::NodeOperator::kIn, .values = {"h100", "h200"}}}));
}

// As returned by the API server: admission has added a sidecar, defaults and a toleration; the pod
// also has the operator's own node pin.
TEST(LearnerTemplate, ReadsWhatAnAdmittedPodNeeds) {
  const auto needs = ReadNeedsOfPod(json::parse(R"({"spec": {
      "nodeSelector": {"pool": "gpu"}, "overhead": {"memory": "16Mi"},
      "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}},
      "containers": [
        {"name": "learner", "resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "4", "nvidia.com/gpu": "2"}}},
        {"name": "proxy", "resources": {"requests": {"cpu": "100m", "memory": "112Mi"}}}]}})"),
                                    "nvidia.com/gpu");
  ASSERT_TRUE(needs) << needs.error();
  EXPECT_EQ(needs->resources,
            (planner::Resources{.gpus = 2, .cpu_millis = 4100, .memory_bytes = 128 << 20}));
  EXPECT_EQ(needs->node_selector, (std::map<std::string, std::string>{{"pool", "gpu"}}));
  EXPECT_EQ(needs->tolerations,
            (std::vector<planner::Toleration>{{.key = "nvidia.com/gpu", .exists = true}}));
  EXPECT_TRUE(needs->node_affinity.empty()) << "a term that names a node by its field";
}

// A learner is pinned to one node; the job may use all nodes that its template allows.
TEST(LearnerTemplate, ReadsNeedsWithoutThePinOfALearner) {
  const auto one = [](std::string key, std::string value) {
    return planner::NodeRequirement{.key = std::move(key), .values = {std::move(value)}};
  };
  const std::string pin =
      R"({"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-1"]})";
  const std::string other = R"({"key": "zone", "operator": "In", "values": ["a"]})";
  const struct {
    std::string terms;
    bool is_learner;
    std::vector<std::vector<planner::NodeRequirement>> affinity;
  } kCases[] = {
      {R"([{"matchExpressions": [)" + pin + "]}]", true, {}},
      {R"([{"matchExpressions": [)" + pin + "]}]",
       false,
       {{one(planner::kHostnameLabel, "host-1")}}},
      {R"([{"matchExpressions": [)" + other + "," + pin + "]}]", true, {{one("zone", "a")}}},
      {R"([{"matchExpressions": [)" + other + "," + pin + R"(]}, {"matchExpressions": [)" + pin +
           "," + pin + "]}]",
       true,
       {{one("zone", "a")}, {one(planner::kHostnameLabel, "host-1")}}},
      {R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}], "matchExpressions": [)" +
           pin + R"(]}, {"matchExpressions": [)" + other + "," + pin + "]}]",
       true,
       {}},
  };
  for (const auto& c : kCases) {
    json pod = json::parse(R"({"metadata": {"annotations": {}}, "spec": {}})");
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
       ["nodeSelectorTerms"] = json::parse(c.terms);
    if (c.is_learner) pod["metadata"]["annotations"][kAnnotationNode] = "gpu-1";
    const auto needs = ReadNeedsOfPod(pod, "nvidia.com/gpu");
    ASSERT_TRUE(needs) << needs.error();
    EXPECT_EQ(needs->node_affinity, c.affinity) << c.terms;
  }
}

TEST(LearnerTemplate, ALargeOneIsNotKept) {
  const std::string small = R"({"metadata": {"annotations": {"a": "b"}}})";
  EXPECT_EQ(Read(small).json, small);
  const std::string large =
      R"({"metadata": {"annotations": {"a": ")" + std::string(20'000, 'b') + R"("}}})";
  const LearnerTemplate read = Read(large);
  EXPECT_EQ(read.json, "");
  EXPECT_EQ(read.hash.size(), 64u);
  EXPECT_NE(read.hash, Read(large + " ").hash);
  EXPECT_TRUE(read.needs);
}

TEST(LearnerTemplate, NamesTheFieldThatIsWrong) {
  json many_terms = json::array();
  for (int i = 0; i < 21; ++i) many_terms.push_back({{"matchExpressions", json::array()}});
  json many_values;
  for (int i = 0; i < 9; ++i) {
    many_values.push_back({{"key", "zone"}, {"operator", "In"}, {"values", json::array()}});
    for (int j = 0; j < 256; ++j) many_values[i]["values"].push_back("z");
  }
  const auto with_terms = [](const json& terms) {
    return json{{"spec",
                 {{"affinity",
                   {{"nodeAffinity",
                     {{"requiredDuringSchedulingIgnoredDuringExecution",
                       {{"nodeSelectorTerms", terms}}}}}}}}}}
        .dump();
  };
  const json affinity = {
      {"nodeAffinity",
       {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", many_terms}}}}}};
  const struct {
    std::string text;
    const char* error;
  } kCases[] = {
      {R"({"spec": {"nodeSelector": {"gpu": true}}})",
       "spec.template.spec.nodeSelector: not an object of at most 64 strings"},
      {R"({"spec": {"containers": [{"resources": {"limits": {"memory": "64GB"}}}]}})",
       "spec.template.spec.containers[0].resources.limits.memory: \"64GB\" is no quantity such as "
       "500m, 2 or 16Gi"},
      {R"({"spec": {"containers": [{"resources": {"requests": {"cpu": -1}}}]}})",
       "spec.template.spec.containers[0].resources.requests.cpu: \"-1\" is no quantity such as "
       "500m, 2 or 16Gi"},
      {R"({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
           "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "in"}]}]}}}}})",
       "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0].matchExpressions[0].operator: must be In, NotIn, Exists, "
       "DoesNotExist, Gt or Lt"},
      {with_terms({{{"matchExpressions", many_values}}}),
       "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0].matchExpressions[8].values: more than 2048 in all terms"},
      {json{{"spec", {{"affinity", affinity}}}}.dump(),
       "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms: not a list of at most 20"},
  };
  for (const auto& c : kCases) {
    const LearnerTemplate read = Read(c.text);
    EXPECT_EQ(read.needs, nullptr) << c.text;
    EXPECT_EQ(read.error, c.error);
  }
}

TEST(LearnerTemplate, NeedsThatNoNodeHasAreBounded) {
  const LearnerTemplate read = Read(
      R"({"spec": {"containers": [{"resources": {"requests": {"cpu": "8E", "memory": "8Ei"}}}]}})");
  ASSERT_TRUE(read.needs) << read.error;
  EXPECT_EQ(read.needs->resources.cpu_millis, std::int64_t{1} << 32);
  EXPECT_EQ(read.needs->resources.memory_bytes, std::int64_t{1} << 48);
}

TEST(LearnerTemplate, ItsHashIsOfTheTemplateAndTheVolume) {
  const std::string one = R"({"spec":{}})";
  EXPECT_EQ(Read(one).hash, Read(one).hash);
  EXPECT_EQ(Read(one).hash.size(), 64u);
  EXPECT_NE(Read(one).hash, Read(R"({"spec":{"a":1}})").hash);
  EXPECT_NE(Read(one).hash, Read(one, R"({"nfs":{}})").hash);
}

}  // namespace
}  // namespace pliant::api
