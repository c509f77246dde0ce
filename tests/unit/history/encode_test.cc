#include "operator/history/encode.h"

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/history/start.h"

namespace pliant::history {
namespace {
using nlohmann::json;

TEST(EncodeTest, AStateAndTheChangesAfterIt) {
  Timeline timeline("op-0_1f");
  const auto gpus = [](std::int64_t count) { return Values{{Field::kGpus, count}}; };
  // Not in the order of their names.
  timeline.Append(kStart, {Kind::kNode, "gpu-1", ""}, gpus(8));
  timeline.Append(kStart, {Kind::kHeld, "team-b/other", "gpu-2"}, gpus(1));
  timeline.Append(kStart, {Kind::kHeld, "team-a/digits", "gpu-2"}, gpus(2));
  timeline.Append(kStart, {Kind::kHeld, "team-a/digits", "gpu-1"}, gpus(4));
  timeline.Append(kStart, {Kind::kJob, "team-b/other", ""}, Values{});
  timeline.Append(kStart, {Kind::kJob, "team-a/digits", ""},
                  Values{{Field::kPhase, std::string("Running")}, {Field::kLoss, 0.25}});
  timeline.Append(kStart + std::chrono::seconds(5), {Kind::kJob, "team-b/other", ""}, std::nullopt);
  const json want = json::parse(R"({"replica":"op-0_1f","sequence":6,"from":1800000001000,
      "begin":1800000000000,"now":1800000009000,"frame":{
      "job":{"team-a/digits":{"phase":"Running","loss":0.25},"team-b/other":{}},
      "held":{"team-a/digits":{"gpu-1":{"gpus":4},"gpu-2":{"gpus":2}},"team-b/other":{"gpu-2":{"gpus":1}}},
      "node":{"gpu-1":{"gpus":8}}},
      "changes":[{"at":1800000005000,"job":"team-b/other","set":null}]})");
  const std::string text =
      EncodeTimeline(timeline, kStart + std::chrono::seconds(1), kStart + std::chrono::seconds(9));
  EXPECT_EQ(json::parse(text), want);
  EXPECT_EQ(json::parse(EncodeTimeline(Timeline("r"), kStart, kStart))["frame"], json::object());
}

TEST(EncodeTest, Changes) {
  EXPECT_EQ(EncodeChanges({}), "[]");
  const std::string text = EncodeChanges(
      {{.at = kStart,
        .subject = {Kind::kHeld, "a/j", "gpu-1"},
        .values = {{Field::kGpus, std::int64_t{4}}}},
       {.at = kStart, .subject = {Kind::kJob, "a/j", ""}, .values = {{Field::kLoss, std::nullopt}}},
       {.at = kStart, .subject = {Kind::kQueue, "q", ""}, .gone = true, .values = {}}});
  EXPECT_EQ(text, R"([{"at":1800000000000,"held":"a/j","node":"gpu-1","set":{"gpus":4}},)"
                  R"({"at":1800000000000,"job":"a/j","set":{"loss":null}},)"
                  R"({"at":1800000000000,"queue":"q","set":null}])");
}

// Names and reasons come from tenants.
TEST(EncodeTest, HostileTextsAreEscaped) {
  const std::string hostile = "\"</script>\\\n\x1b[31m\u2028\xff";
  const std::string text = EncodeChanges({{.at = kStart,
                                           .subject = {Kind::kJob, hostile, ""},
                                           .values = {{Field::kReason, hostile}}}});
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << int(c);
  const json read = json::parse(text);
  EXPECT_EQ(read[0]["job"], "\"</script>\\\n\x1b[31m\u2028\ufffd");
  EXPECT_EQ(read[0]["set"]["reason"], read[0]["job"]);
}

}  // namespace
}  // namespace pliant::history
