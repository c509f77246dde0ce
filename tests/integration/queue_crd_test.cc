// Which GpuPools and TrainingQueues the API server accepts and which it refuses, with which
// messages.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/api_server.h"
#include "tests/kube/yaml_objects.h"

namespace pliant::kube {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr ResourceType kPools{"pliant.dev", "v1alpha1", "gpupools", "GpuPool", false};
constexpr ResourceType kQueues{"pliant.dev", "v1alpha1", "trainingqueues", "TrainingQueue", false};

struct BadSpec {
  json spec;                      // a merge patch
  std::vector<std::string> says;  // the field and the remedy
};

json SelectorWith(const json& patch) {
  json expression = {{"key", "gpu"}, {"operator", "In"}, {"values", {"a100"}}};
  expression.merge_patch(patch);
  return {{"matchExpressions", json::array({expression})}};
}

class AdministratorKindTest : public ApiServerTest {
 protected:
  AdministratorKindTest(const ResourceType& type, json smallest)
      : type_(type), smallest_(std::move(smallest)) {
    DeleteAtEnd(type);
  }

  void SetUp() override {
    ApiServerTest::SetUp();
    if (HasFatalFailure()) return;
    InstallOwnKinds();
  }

  json Object(const json& patch = json::object(), const std::string& name = "") const {
    json object = {{"metadata", {{"name", name.empty() ? ns() : name}}}, {"spec", smallest_}};
    object["spec"].merge_patch(patch);
    return object;
  }

  std::string Refusal(const json& object) { return ApiServerTest::Refusal(type_, object); }

  std::string RefusalOfChange(const json& spec) {
    return ApiServerTest::RefusalOfChange(type_, {"", ns()}, {{"spec", spec}});
  }

  void ExpectRefused(const std::string& refusal, const BadSpec& bad) {
    for (const std::string& part : bad.says) EXPECT_THAT(refusal, HasSubstr(part)) << bad.spec;
  }

  json Store(const json& patch = json::object()) {
    const auto made = client().Create(type_, Object(patch));
    EXPECT_TRUE(made) << made.error();
    return made ? *made : json();
  }

  std::string RefusalOfStatus(const json& status) {
    const auto written =
        client().Patch(type_, {"", ns()}, {{"status", status}}, {.subresource = "status"});
    return written ? "" : written.error().message;
  }

  void ExpectNamesAreLabels() {
    for (const std::string& good : {std::string("a"), std::string("7-a"), std::string(63, 'x')}) {
      EXPECT_EQ(Refusal(Object(json::object(), good)), "") << good;
    }
    for (const std::string& bad : {std::string("a.b"), std::string(64, 'x')}) {
      EXPECT_THAT(Refusal(Object(json::object(), bad)),
                  HasSubstr("metadata.name must consist of at most 63"));
    }
  }

  // `name` is a label selector.
  void ExpectSelector(const std::string& name) {
    json labels = json::object();
    for (int i = 0; i < 32; ++i) labels["example.com/label-" + std::to_string(i)] = "x";
    const json good[] = {
        json::object(),
        {{"matchLabels", labels}},
        {{"matchLabels", {{"gpu", ""}}}},
        SelectorWith({{"operator", "NotIn"}}),
        SelectorWith({{"operator", "Exists"}, {"values", nullptr}}),
        SelectorWith({{"operator", "DoesNotExist"}, {"values", json::array()}}),
        SelectorWith({{"key", "nvidia.com/gpu.product"}}),
        SelectorWith({{"values", std::vector<std::string>(64, std::string(63, 'v'))}}),
    };
    for (const json& each : good) EXPECT_EQ(Refusal(Object({{name, each}})), "") << each;

    const std::string expression = "spec." + name + ".matchExpressions[0]";
    json too_many = labels;
    too_many["one-more"] = "x";
    const struct {
      json selector;
      std::vector<std::string> says;
    } bad[] = {
        {{{"matchLabels", {{"gpu", true}}}},
         {"spec." + name + ".matchLabels.gpu", "must be of type string"}},
        {{{"matchLabels", {{"gpu", "a b"}}}},
         {"spec." + name + ".matchLabels.gpu", "should match"}},
        {{{"matchLabels", {{"gpu", std::string(64, 'v')}}}},
         {"spec." + name + ".matchLabels.gpu", "63"}},
        {{{"matchLabels", too_many}}, {"spec." + name + ".matchLabels", "32"}},
        {SelectorWith({{"key", nullptr}}), {expression + ".key: Required value"}},
        {SelectorWith({{"key", "a b"}}), {expression + ".key", "should match"}},
        {SelectorWith({{"operator", nullptr}}), {expression + ".operator: Required value"}},
        {SelectorWith({{"operator", "Gt"}}), {expression + ".operator", "Unsupported value"}},
        {SelectorWith({{"values", nullptr}}),
         {expression + ".values", "values must have at least one item", "add one, or use Exists"}},
        {SelectorWith({{"operator", "NotIn"}, {"values", json::array()}}),
         {expression + ".values", "values must have at least one item"}},
        {SelectorWith({{"operator", "Exists"}}),
         {expression + ".values", "values must be empty", "remove them, or use In or NotIn"}},
        {SelectorWith({{"operator", "DoesNotExist"}}),
         {expression + ".values", "values must be empty"}},
        {SelectorWith({{"values", json::array({"a/b"})}}),
         {expression + ".values[0]", "should match"}},
        {SelectorWith({{"values", std::vector<std::string>(65, "v")}}),
         {expression + ".values", "64"}},
    };
    for (const auto& each : bad) {
      ExpectRefused(Refusal(Object({{name, each.selector}})), {each.selector, each.says});
    }
    json many = json::array();
    for (int i = 0; i < 33; ++i) many.push_back({{"key", "gpu"}, {"operator", "Exists"}});
    EXPECT_THAT(Refusal(Object({{name, {{"matchExpressions", many}}}})),
                HasSubstr("spec." + name + ".matchExpressions"));
  }

 private:
  const ResourceType type_;
  const json smallest_;
};

class PoolDefinitionTest : public AdministratorKindTest {
 protected:
  PoolDefinitionTest() : AdministratorKindTest(kPools, json::object()) {}
};

class QueueDefinitionTest : public AdministratorKindTest {
 protected:
  QueueDefinitionTest() : AdministratorKindTest(kQueues, {{"namespaceSelector", json::object()}}) {}
};

TEST_F(PoolDefinitionTest, DefaultsAreFilledIn) {
  EXPECT_EQ(Store().at("spec"), json::parse(R"({
    "reservedGpus": 0, "scaleUp": "None", "yieldToPending": false,
    "topologyKeys": ["topology.kubernetes.io/zone", "nvidia.com/gpu.clique"],
    "bounds": {"minRuntimeSeconds": 3600, "cooldownSeconds": 3600, "gracePeriodSeconds": 3585}})"));
}

TEST_F(PoolDefinitionTest, GoodPoolsAreTaken) {
  const char* const cases[] = {
      "{}",
      R"({"reservedGpus": 1000000,
          "bounds": {"minRuntimeSeconds": 86400, "cooldownSeconds": 3600, "gracePeriodSeconds": 3585,
                     "gpusPerJob": 16384}})",
      R"({"topologyKeys": []})",
      R"({"resourceName": "nvidia.com/mig-1g.10gb"})",
      R"({"scaleUp": "Minimum", "yieldToPending": true})",
      R"({"topologyKeys": ["a", "b.example/c", "cloud.google.com/gce-topology-block", "d"]})",
      R"({"bounds": {"minRuntimeSeconds": 0, "cooldownSeconds": 0, "gracePeriodSeconds": 1, "gpusPerJob": 1}})",
  };
  for (const char* spec : cases) EXPECT_EQ(Refusal(Object(json::parse(spec))), "") << spec;
  ExpectNamesAreLabels();
  ExpectSelector("nodeSelector");
}

TEST_F(PoolDefinitionTest, BadPoolsAreRefusedWithTheFieldNamed) {
  const struct {
    const char* spec;
    std::vector<std::string> says;
  } cases[] = {
      {R"({"resourceName": "gpu"})", {"spec.resourceName"}},
      {R"({"resourceName": "requests.nvidia.com/gpu"})",
       {"must not be a resource of Kubernetes itself"}},
      {R"({"resourceName": "x.kubernetes.io/gpu"})",
       {"must not be a resource of Kubernetes itself"}},
      {R"({"reservedGpus": -1})", {"spec.reservedGpus", "greater than or equal to 0"}},
      {R"({"reservedGpus": 1000001})", {"spec.reservedGpus", "less than or equal to 1000000"}},
      {R"({"topologyKeys": ["a", "b", "c", "d", "e"]})",
       {"spec.topologyKeys", "must have at most 4 items"}},
      {R"({"topologyKeys": ["a b"]})", {"spec.topologyKeys[0]", "should match"}},
      {R"({"scaleUp": "Always"})", {"spec.scaleUp", "\"None\", \"Minimum\""}},
      {R"({"bounds": {"minRuntimeSeconds": -1}})",
       {"spec.bounds.minRuntimeSeconds", "greater than or equal to 0"}},
      {R"({"bounds": {"minRuntimeSeconds": 86401}})",
       {"spec.bounds.minRuntimeSeconds", "less than or equal to 86400"}},
      {R"({"bounds": {"cooldownSeconds": 3601}})",
       {"spec.bounds.cooldownSeconds", "less than or equal to 3600"}},
      {R"({"bounds": {"gracePeriodSeconds": 0}})",
       {"spec.bounds.gracePeriodSeconds", "greater than or equal to 1"}},
      {R"({"bounds": {"gracePeriodSeconds": 3586}})",
       {"spec.bounds.gracePeriodSeconds", "less than or equal to 3585"}},
      {R"({"bounds": {"gpusPerJob": 0}})",
       {"spec.bounds.gpusPerJob", "greater than or equal to 1"}},
      {R"({"bounds": {"gpusPerJob": 16385}})",
       {"spec.bounds.gpusPerJob", "less than or equal to 16384"}},
  };
  for (const auto& bad : cases) {
    const json spec = json::parse(bad.spec);
    ExpectRefused(Refusal(Object(spec)), {spec, bad.says});
  }
  json nothing = Object();
  nothing.erase("spec");
  EXPECT_THAT(Refusal(nothing), HasSubstr("spec: Required value"));
}

TEST_F(PoolDefinitionTest, AllowsChangesExceptOfTheResourceName) {
  Store();
  EXPECT_EQ(RefusalOfChange({{"reservedGpus", 4},
                             {"nodeSelector", {{"matchLabels", {{"gpu", "a100"}}}}},
                             {"bounds", {{"gpusPerJob", 8}}}}),
            "");
  EXPECT_THAT(RefusalOfChange({{"resourceName", "amd.com/gpu"}}),
              HasSubstr("resourceName is immutable"));
}

TEST_F(PoolDefinitionTest, StatusIsChecked) {
  Store();
  EXPECT_EQ(RefusalOfStatus(json::parse(R"({"observedGeneration": 1, "nodes": 4, "capacityGpus": 32,
      "allocatedGpus": 20, "foreignGpus": 2, "conditions": [{"type": "Overlapping", "status": "False",
      "reason": "Apart", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]})")),
            "");
  EXPECT_THAT(RefusalOfStatus({{"nodes", -1}}), HasSubstr("greater than or equal to 0"));
}

TEST_F(QueueDefinitionTest, DefaultsAreFilledIn) {
  EXPECT_EQ(Store().at("spec"), json::parse(R"({
    "pool": "default", "namespaceSelector": {}, "weight": 100, "guaranteed": 0, "policy": "FairShare",
    "bias": "None", "queueing": "BestEffort", "reclaim": "Evict", "priority": {"default": 5000, "max": 10000},
    "serviceHalfLifeSeconds": 86400, "stop": "None"})"));
}

TEST_F(QueueDefinitionTest, GoodQueuesAreTaken) {
  const char* const cases[] = {
      "{}",
      R"({"pool": "a100", "weight": 10000, "guaranteed": 1000000, "limit": 1000000, "lendingLimit": 1000000,
          "policy": "Priority", "queueing": "Strict", "reclaim": "ShrinkOnly",
          "priority": {"default": 10000, "max": 10000}, "serviceHalfLifeSeconds": 31536000, "stop": "Hold"})",
      R"({"weight": 1, "limit": 0, "lendingLimit": 0, "policy": "Fifo",
          "priority": {"default": 1, "max": 1}, "serviceHalfLifeSeconds": 60, "stop": "Drain"})",
      R"({"policy": "Throughput", "bias": "ShortJobs"})",
      R"({"priority": {"max": 5000}})",
  };
  for (const char* spec : cases) EXPECT_EQ(Refusal(Object(json::parse(spec))), "") << spec;
  ExpectNamesAreLabels();
  ExpectSelector("namespaceSelector");
}

TEST_F(QueueDefinitionTest, BadQueuesAreRefusedWithTheFieldNamed) {
  const struct {
    const char* spec;
    std::vector<std::string> says;
  } cases[] = {
      {R"({"pool": ""})", {"spec.pool"}},
      {R"({"pool": "a.b"})", {"spec.pool", "should match"}},
      {R"({"namespaceSelector": null})", {"spec.namespaceSelector: Required value"}},
      {R"({"weight": 0})", {"spec.weight", "greater than or equal to 1"}},
      {R"({"weight": 10001})", {"spec.weight", "less than or equal to 10000"}},
      {R"({"guaranteed": -1})", {"spec.guaranteed", "greater than or equal to 0"}},
      {R"({"guaranteed": 1000001})", {"spec.guaranteed", "less than or equal to 1000000"}},
      {R"({"limit": -1})", {"spec.limit", "greater than or equal to 0"}},
      {R"({"limit": 1000001})", {"spec.limit", "less than or equal to 1000000"}},
      {R"({"guaranteed": 8, "limit": 7})",
       {"spec.guaranteed", "must not be greater than limit", "lower it, or raise limit"}},
      {R"({"lendingLimit": -1})", {"spec.lendingLimit", "greater than or equal to 0"}},
      {R"({"lendingLimit": 1})",
       {"spec.lendingLimit", "must not be greater than guaranteed",
        "lower it, or raise guaranteed"}},
      {R"({"guaranteed": 8, "lendingLimit": 9})",
       {"spec.lendingLimit", "must not be greater than guaranteed"}},
      {R"({"policy": "Fair"})", {"spec.policy", "Unsupported value", "FairShare"}},
      {R"({"bias": "Long"})", {"spec.bias", "Unsupported value", "ShortJobs"}},
      {R"({"queueing": "None"})", {"spec.queueing", "Unsupported value", "BestEffort"}},
      {R"({"reclaim": "Kill"})", {"spec.reclaim", "Unsupported value", "ShrinkOnly"}},
      {R"({"stop": "Yes"})", {"spec.stop", "Unsupported value", "Drain"}},
      {R"({"priority": {"default": 0}})", {"spec.priority.default", "greater than or equal to 1"}},
      {R"({"priority": {"max": 10001}})", {"spec.priority.max", "less than or equal to 10000"}},
      {R"({"priority": {"max": 4999}})",
       {"spec.priority.default", "must not be greater than priority.max",
        "lower it, or raise priority.max"}},
      {R"({"serviceHalfLifeSeconds": 59})",
       {"spec.serviceHalfLifeSeconds", "greater than or equal to 60"}},
      {R"({"serviceHalfLifeSeconds": 31536001})",
       {"spec.serviceHalfLifeSeconds", "less than or equal to 31536000"}},
  };
  for (const auto& bad : cases) {
    const json spec = json::parse(bad.spec);
    ExpectRefused(Refusal(Object(spec)), {spec, bad.says});
  }
}

TEST_F(QueueDefinitionTest, AllowsChangesExceptOfThePool) {
  Store();
  EXPECT_EQ(RefusalOfChange(json::parse(R"({"namespaceSelector": {"matchLabels": {"team": "a"}},
      "weight": 7, "guaranteed": 8, "limit": 16, "lendingLimit": 4, "policy": "Fifo", "queueing": "Strict",
      "reclaim": "ShrinkOnly", "priority": {"max": 6000}, "serviceHalfLifeSeconds": 60, "stop": "Drain"})")),
            "");
  EXPECT_THAT(RefusalOfChange({{"pool", "a100"}}), HasSubstr("spec.pool"));
  EXPECT_THAT(RefusalOfChange({{"pool", "a100"}}),
              HasSubstr("pool is immutable, because the queue's jobs hold its GPUs: create "
                        "another queue instead"));
}

TEST_F(QueueDefinitionTest, StatusIsChecked) {
  Store();
  EXPECT_EQ(RefusalOfStatus(json::parse(R"({"observedGeneration": 1, "demand": 40, "entitled": 24,
      "allocated": 20, "borrowed": 4, "lent": 1, "waiting": 2, "running": 5, "reason": "20 of 32 GPUs",
      "conditions": [{"type": "GuaranteeMet", "status": "True", "reason": "Met", "message": "",
      "lastTransitionTime": "2026-01-02T03:04:05Z"}]})")),
            "");
  EXPECT_THAT(RefusalOfStatus({{"waiting", -1}}), HasSubstr("greater than or equal to 0"));
  EXPECT_THAT(RefusalOfStatus({{"reason", std::string(1025, 'x')}}), HasSubstr("1024"));
}

TEST_F(QueueDefinitionTest, TheExamplesAreGood) {
  const auto objects = LoadYamlObjects(PLIANT_SOURCE_DIR "/manifests/examples/queues.yaml");
  ASSERT_TRUE(objects) << objects.error();
  std::vector<std::string> kinds;
  for (const json& object : *objects) {
    const std::string& kind = kinds.emplace_back(object.at("kind"));
    const auto made =
        client().Create(kind == "GpuPool" ? kPools : kQueues, object, {.dry_run = true});
    EXPECT_TRUE(made) << object.at("metadata").at("name") << ": " << made.error();
  }
  EXPECT_THAT(kinds, testing::ElementsAre("GpuPool", "TrainingQueue", "TrainingQueue"));
}

}  // namespace
}  // namespace pliant::kube
