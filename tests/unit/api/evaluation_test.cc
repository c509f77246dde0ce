#include "operator/api/evaluation.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using nlohmann::json;

Evaluation At(std::int64_t step, double loss = 1) {
  return {.step = step, .loss = loss, .sums = {}};
}

std::vector<std::int64_t> StepsOf(const std::vector<Evaluation>& evaluations) {
  std::vector<std::int64_t> steps;
  for (const Evaluation& each : evaluations) steps.push_back(each.step);
  return steps;
}

using Steps = std::vector<std::int64_t>;

TEST(Evaluations, AreMergedByStep) {
  const auto merged = Merged({At(10), At(20)}, {At(20, 0.5), At(30)}, 30);
  EXPECT_EQ(StepsOf(merged), Steps({10, 20, 30}));
  EXPECT_EQ(merged[1].loss, 0.5) << "the newer one counts";
}

TEST(Evaluations, AfterARestoreThoseThatWereLostGo) {
  EXPECT_EQ(StepsOf(Merged({At(10), At(20), At(30)}, {At(10)}, 25)), Steps({10, 20}));
  EXPECT_EQ(StepsOf(Merged({At(10)}, {}, std::nullopt)), Steps({10}))
      << "the step is not known: nothing is lost";
}

TEST(Evaluations, TheLastOnesAreKept) {
  std::vector<Evaluation> older;
  for (int step = 1; step <= 16; ++step) older.push_back(At(step));
  const auto merged = Merged(older, {At(17)}, 17);
  EXPECT_EQ(merged.size(), kMaxEvaluations);
  EXPECT_EQ(merged.front().step, 2);
}

// They come from a program of the tenant.
TEST(Evaluations, AreReadDefensively) {
  std::string too_many = R"({"a": 1)";
  for (int sum = 0; sum < 16; ++sum) too_many += R"(, "s)" + std::to_string(sum) + R"(": 1)";
  const struct {
    std::string sums;
    bool is_understood;
  } kCases[] = {{R"({"samples": 8, "entropy": -0.5})", true},
                {too_many + "}", false},
                {R"({"": 1})", false},
                {R"({"a b": 1})", false},
                {R"({"\u001b[2J": 1})", false},
                {R"({")" + std::string(64, 'x') + R"(": 1})", false},
                {R"({"a": "text"})", false},
                {R"([1])", false}};
  for (const auto& c : kCases) {
    const json object = {
        {"evaluations", json::array({{{"step", 1}, {"sums", json::parse(c.sums)}}})}};
    Fields fields(object);
    ReadEvaluations(fields);
    EXPECT_EQ(fields.error() == std::nullopt, c.is_understood) << c.sums;
  }
}

}  // namespace
}  // namespace pliant::api
