#include "operator/api/resource_quota.h"

#include <nlohmann/json.hpp>
#include <optional>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

TEST(ResourceQuota, ReadsHowManyGpusANamespaceMayHold) {
  const struct {
    const char* spec;
    std::optional<std::int64_t> gpus;
  } kCases[] = {
      {R"({"hard": {"requests.nvidia.com/gpu": "4", "pods": "10"}})", 4},
      {R"({"hard": {"requests.nvidia.com/gpu": 0}})", 0},
      {R"({"hard": {"requests.nvidia.com/gpu": "2k"}})", 2000},
      {R"({"hard": {"requests.amd.com/gpu": "4", "nvidia.com/gpu": "1"}})", std::nullopt},
      {R"({"hard": {"requests.nvidia.com/gpu": "4"}, "scopes": ["Terminating"]})", std::nullopt},
      {R"({"hard": {"requests.nvidia.com/gpu": "4"}, "scopeSelector": {}})", std::nullopt},
      {R"({})", std::nullopt},
  };
  for (const auto& c : kCases) {
    const nlohmann::json object = {{"metadata", {{"name", "q"}, {"namespace", "team-a"}}},
                                   {"spec", nlohmann::json::parse(c.spec)}};
    const auto quota = DecodeResourceQuota(object, "nvidia.com/gpu");
    ASSERT_TRUE(quota) << quota.error();
    EXPECT_EQ(quota->gpus, c.gpus) << c.spec;
  }
}

TEST(ResourceQuota, ReadsOtherExtendedResourcesToo) {
  const auto quota = DecodeResourceQuota(nlohmann::json::parse(R"({"metadata": {"name": "q"},
      "spec": {"hard": {"requests.nvidia.com/mig-1g.10gb": "3", "requests.cpu": "4"}}})"),
                                         "nvidia.com/gpu");
  ASSERT_TRUE(quota) << quota.error();
  EXPECT_EQ(quota->gpus, std::nullopt);
  EXPECT_EQ(quota->others, (std::map<std::string, std::int64_t>{{"nvidia.com/mig-1g.10gb", 3}}));
}

TEST(ResourceQuota, NamesWhatIsWrong) {
  const auto quota = DecodeResourceQuota(
      nlohmann::json::parse(
          R"({"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "many"}}})"),
      "nvidia.com/gpu");
  ASSERT_FALSE(quota);
  EXPECT_EQ(quota.error().message,
            "spec.hard.requests.nvidia.com/gpu: \"many\" is no quantity such as 500m, 2 or 16Gi");
}

}  // namespace
}  // namespace pliant::api
