// The kinds of the administrators have no namespace, and a status of their own.
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "operator/api/gpu_pool.h"
#include "operator/api/training_queue.h"
#include "tests/integration/api_server.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

constexpr ResourceType kPools{"pliant.dev", "v1alpha1", "gpupools", "GpuPool", false};
constexpr ResourceType kQueues{"pliant.dev", "v1alpha1", "trainingqueues", "TrainingQueue", false};

class OwnKindsTest : public ApiServerTest {
 protected:
  void SetUp() override {
    ApiServerTest::SetUp();
    if (HasFatalFailure()) return;
    InstallOwnKinds();
  }

  // Creates an object of the test's name, and replaces its status. Returns it as it is stored.
  json Store(const ResourceType& type, const json& spec, const json& status) {
    DeleteAtEnd(type);
    const auto made = client().Create(type, {{"metadata", {{"name", ns()}}}, {"spec", spec}});
    EXPECT_TRUE(made) << made.error();
    const auto told = client().Patch(type, {"", ns()}, {{"status", status}, {"spec", {{"x", 1}}}},
                                     {.subresource = "status"});
    EXPECT_TRUE(told) << told.error();
    const auto read = client().Get(type, {"", ns()});
    EXPECT_TRUE(read) << read.error();
    return read.value_or(json());
  }
};

api::Condition Good(const char* type) {
  return {.type = type,
          .status = api::ConditionStatus::kTrue,
          .reason = "Good",
          .message = "m",
          .last_transition = api::WallTime(std::chrono::seconds(5)),
          .observed_generation = 1};
}

TEST_F(OwnKindsTest, APoolIsReadAsItIsStored) {
  const api::GpuPoolStatus status{.observed_generation = 1,
                                  .nodes = 4,
                                  .capacity_gpus = 32,
                                  .allocated_gpus = 20,
                                  .foreign_gpus = 2,
                                  .conditions = {Good("Ready")}};
  const auto pool = api::DecodeGpuPool(Store(kPools, json::object(), api::EncodeStatus(status)));
  ASSERT_TRUE(pool) << pool.error();
  EXPECT_EQ(pool->unreadable, "");
  EXPECT_EQ(pool->meta.name_space, "");
  EXPECT_EQ(pool->spec, api::GpuPoolSpec{}) << "the decoder's defaults are those of the server";
  EXPECT_EQ(pool->status, status);
}

TEST_F(OwnKindsTest, AQueueIsReadAsItIsStored) {
  const api::TrainingQueueStatus status{.observed_generation = 1,
                                        .demand = 40,
                                        .entitled = 24,
                                        .allocated = 20,
                                        .borrowed = 4,
                                        .lent = 1,
                                        .waiting = 2,
                                        .running = 5,
                                        .reason = "20 of 32 GPUs",
                                        .conditions = {Good("Active")}};
  const auto queue = api::DecodeTrainingQueue(
      Store(kQueues, {{"namespaceSelector", json::object()}}, api::EncodeStatus(status)));
  ASSERT_TRUE(queue) << queue.error();
  EXPECT_EQ(queue->unreadable, "");
  EXPECT_EQ(queue->meta.name_space, "");
  EXPECT_EQ(queue->spec, api::TrainingQueueSpec{}) << "the decoder's defaults are the server's";
  EXPECT_EQ(queue->status, status);
}

}  // namespace
}  // namespace pliant::kube
