#include "operator/api/gpu_pool.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using nlohmann::json;
using std::chrono::seconds;

json PoolObject(const json& spec = json::object()) {
  return {{"metadata", {{"name", "a100"}, {"uid", "u"}, {"generation", 2}}}, {"spec", spec}};
}

TEST(GpuPool, FillsInDefaults) {
  const Result<GpuPool> pool = DecodeGpuPool(PoolObject());
  ASSERT_TRUE(pool) << pool.error();
  EXPECT_EQ(pool->meta.name, "a100");
  EXPECT_EQ(pool->meta.generation, 2);
  EXPECT_EQ(pool->unreadable, "");
  EXPECT_EQ(pool->spec, GpuPoolSpec{});
  EXPECT_TRUE(pool->spec.node_selector.empty());
  EXPECT_EQ(pool->spec.reserved_gpus, 0);
  EXPECT_EQ(pool->spec.bounds, PoolBounds{});
  EXPECT_EQ(pool->spec.bounds.max_resize.min_runtime, std::chrono::hours(1));
  EXPECT_EQ(pool->spec.bounds.max_gpus_per_job, std::nullopt);
  EXPECT_EQ(pool->status, GpuPoolStatus{});
}

TEST(GpuPool, ReadsAllFields) {
  const Result<GpuPool> pool = DecodeGpuPool(PoolObject(json::parse(R"({
    "nodeSelector": {"matchLabels": {"gpu": "a100"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]},
    "resourceName": "nvidia.com/mig-1g.10gb", "reservedGpus": 8, "topologyKeys": ["zone", "rack"], "scaleUp": "Minimum", "yieldToPending": true,
    "bounds": {"minRuntimeSeconds": 600, "cooldownSeconds": 20, "gracePeriodSeconds": 50, "gpusPerJob": 64}})")));
  ASSERT_TRUE(pool) << pool.error();
  EXPECT_EQ(pool->unreadable, "");
  EXPECT_EQ(
      pool->spec,
      (GpuPoolSpec{.node_selector = {.match_labels = {{"gpu", "a100"}},
                                     .match_expressions = {{.key = "old",
                                                            .op = LabelOperator::kDoesNotExist,
                                                            .values = {}}}},
                   .resource_name = "nvidia.com/mig-1g.10gb",
                   .reserved_gpus = 8,
                   .topology_keys = {"zone", "rack"},
                   .scale_up = ScaleUp::kMinimum,
                   .yields_to_pending = true,
                   .bounds = {.max_resize = {.grace_period = seconds(50),
                                             .min_runtime = seconds(600),
                                             .cooldown = seconds(20)},
                              .max_gpus_per_job = 64}}));
}

TEST(GpuPool, NamesTheFieldThatIsWrong) {
  const struct {
    const char* path;
    json value;
    const char* unreadable;  // "": it is good
  } kCases[] = {
      {"/spec", nullptr, "spec: missing"},
      {"/spec", 1, "spec: not an object"},
      {"/spec/nodeSelector", "all", "spec.nodeSelector: not an object"},
      {"/spec/nodeSelector",
       {{"matchExpressions", {{{"key", "a"}, {"operator", "Like"}}}}},
       "spec.nodeSelector.matchExpressions[0].operator: none of In, NotIn, Exists, DoesNotExist"},
      {"/spec/resourceName", "amd.com/gpu", ""},
      {"/spec/resourceName", "cpu",
       "spec.resourceName: not the name of an extended resource, such as nvidia.com/gpu"},
      {"/spec/resourceName", "kubernetes.io/batch",
       "spec.resourceName: not the name of an extended resource, such as nvidia.com/gpu"},
      {"/spec/reservedGpus", -1, "spec.reservedGpus: not a whole number from 0 to 1000000"},
      {"/spec/reservedGpus", 1'000'000, ""},
      {"/spec/reservedGpus", 1'000'001, "spec.reservedGpus: not a whole number from 0 to 1000000"},
      {"/spec/topologyKeys", json::array(), ""},
      {"/spec/topologyKeys",
       {"a", "b", "c", "d", "e"},
       "spec.topologyKeys: not a list of at most 4 strings"},
      {"/spec/scaleUp", "Always", "spec.scaleUp: none of None, Minimum"},
      {"/spec/bounds", 1, "spec.bounds: not an object"},
      {"/spec/bounds/minRuntimeSeconds", 0, ""},
      {"/spec/bounds/minRuntimeSeconds", 86400, ""},
      {"/spec/bounds/minRuntimeSeconds", 86401,
       "spec.bounds.minRuntimeSeconds: not a whole number from 0 to 86400"},
      {"/spec/bounds/cooldownSeconds", 0, ""},
      {"/spec/bounds/cooldownSeconds", 3601,
       "spec.bounds.cooldownSeconds: not a whole number from 0 to 3600"},
      {"/spec/bounds/gracePeriodSeconds", 0,
       "spec.bounds.gracePeriodSeconds: not a whole number from 1 to 3585"},
      {"/spec/bounds/gracePeriodSeconds", 3586,
       "spec.bounds.gracePeriodSeconds: not a whole number from 1 to 3585"},
      {"/spec/bounds/gpusPerJob", 0, "spec.bounds.gpusPerJob: not a whole number from 1 to 16384"},
      {"/spec/bounds/gpusPerJob", 16384, ""},
      {"/spec/bounds/gpusPerJob", 16385,
       "spec.bounds.gpusPerJob: not a whole number from 1 to 16384"},
  };
  for (const auto& c : kCases) {
    json object = PoolObject();
    object[json::json_pointer(c.path)] = c.value;
    const Result<GpuPool> pool = DecodeGpuPool(object);
    ASSERT_TRUE(pool) << pool.error();
    EXPECT_EQ(pool->unreadable, c.unreadable) << c.path << " " << c.value;
    EXPECT_EQ(pool->meta.uid, "u");
  }
}

TEST(GpuPool, StatusReadsBackAsWritten) {
  const GpuPoolStatus full{.observed_generation = 3,
                           .nodes = 4,
                           .capacity_gpus = 32,
                           .allocated_gpus = 20,
                           .foreign_gpus = 2,
                           .requested_gpus = 5,
                           .yielded_gpus = 6,
                           .conditions = {{.type = "Ready",
                                           .status = ConditionStatus::kTrue,
                                           .reason = "Ready",
                                           .message = "m",
                                           .last_transition = WallTime(seconds(5)),
                                           .observed_generation = 3}}};
  for (const GpuPoolStatus& status : {full, GpuPoolStatus{}}) {
    json object = PoolObject();
    object.merge_patch({{"status", EncodeStatus(status)}});
    const Result<GpuPool> pool = DecodeGpuPool(object);
    ASSERT_TRUE(pool) << pool.error();
    EXPECT_EQ(pool->status, status);
  }
}

// It only reports.
TEST(GpuPool, AnInvalidStatusIsIgnored) {
  json object = PoolObject();
  object["status"] = {{"nodes", -1}};
  const Result<GpuPool> pool = DecodeGpuPool(object);
  ASSERT_TRUE(pool) << pool.error();
  EXPECT_EQ(pool->unreadable, "");
  EXPECT_EQ(pool->status.nodes, 0);
}

}  // namespace
}  // namespace pliant::api
