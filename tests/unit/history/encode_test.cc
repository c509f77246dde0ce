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

TEST(EncodeTest, AMoment) {
  const Moment moment{
      .at = kStart,
      .cursor = {"op-0_1f", 42},
      .frame = {{{Kind::kJob, "team-a/digits", ""},
                 {{Field::kPhase, std::string("Running")}, {Field::kLoss, 0.25}}},
                {{Kind::kHeld, "team-a/digits", "gpu-1"}, {{Field::kGpus, std::int64_t{4}}}},
                {{Kind::kHeld, "team-a/digits", "gpu-2"}, {{Field::kGpus, std::int64_t{2}}}},
                {{Kind::kHeld, "team-b/other", "gpu-2"}, {{Field::kGpus, std::int64_t{1}}}},
                {{Kind::kNode, "gpu-1", ""}, {{Field::kGpus, std::int64_t{8}}}}}};
  const json want = json::parse(R"({"replica":"op-0_1f","sequence":42,"from":1800000000000,"frame":{
      "job":{"team-a/digits":{"phase":"Running","loss":0.25}},
      "held":{"team-a/digits":{"gpu-1":{"gpus":4},"gpu-2":{"gpus":2}},"team-b/other":{"gpu-2":{"gpus":1}}},
      "node":{"gpu-1":{"gpus":8}}}})");
  EXPECT_EQ(json::parse(EncodeMoment(moment)), want);
  EXPECT_EQ(json::parse(EncodeMoment(moment, /*open=*/true) + "}"), want);
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
