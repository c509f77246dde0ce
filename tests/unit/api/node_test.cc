#include "operator/api/node.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "operator/api/service.h"

namespace pliant::api {
namespace {

TEST(Node, ReadsWhatPlacementNeeds) {
  const auto object = nlohmann::json::parse(R"({
    "metadata": {"name": "gpu-1", "labels": {"zone": "a"}},
    "spec": {"unschedulable": true, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "3900m", "memory": "8Gi", "nvidia.com/gpu": "4"},
               "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}})");
  const Result<Node> node = DecodeNode(object, "nvidia.com/gpu");
  ASSERT_TRUE(node) << node.error();
  EXPECT_EQ(node->meta.labels.at("zone"), "a");
  EXPECT_TRUE(node->unschedulable);
  EXPECT_TRUE(node->ready);
  EXPECT_EQ(node->taints,
            (std::vector<NodeTaint>{{.key = "gpu", .value = "yes", .effect = "NoSchedule"}}));
  EXPECT_EQ(node->allocatable,
            (Resources{.gpus = 4, .cpu_millis = 3900, .memory_bytes = std::int64_t{8} << 30}));
}

TEST(Node, OffersOtherExtendedResourcesToo) {
  const auto object = nlohmann::json::parse(R"({
    "metadata": {"name": "gpu-1"},
    "status": {"allocatable": {"cpu": "4", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}}})");
  EXPECT_EQ(DecodeNode(object, "nvidia.com/gpu").value_or(Node{}).allocatable.others,
            (std::map<std::string, std::int64_t>{{"nvidia.com/mig-1g.10gb", 7}}));
}

TEST(Node, WithoutConditionsIsNotReady) {
  const Result<Node> node = DecodeNode({{"metadata", {{"name", "new"}}}}, "nvidia.com/gpu");
  ASSERT_TRUE(node) << node.error();
  EXPECT_FALSE(node->ready);
  EXPECT_EQ(node->allocatable.gpus, 0);
}

TEST(Service, ReadsAddressAndSelector) {
  const auto object = nlohmann::json::parse(R"({
    "metadata": {"name": "s", "namespace": "a", "labels": {"pliant.dev/job-uid": "u", "other": "x"}},
    "spec": {"clusterIP": "10.0.0.7", "selector": {"pliant.dev/term": "3"}}})");
  const Result<Service> service = DecodeService(object);
  ASSERT_TRUE(service) << service.error();
  EXPECT_EQ(service->cluster_ip, "10.0.0.7");
  EXPECT_EQ(service->selector.at("pliant.dev/term"), "3");
  EXPECT_EQ(service->meta.labels.size(), 1u);
}

}  // namespace
}  // namespace pliant::api
