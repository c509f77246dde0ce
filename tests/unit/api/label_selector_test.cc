#include "operator/api/label_selector.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using nlohmann::json;

struct ReadSelector {
  LabelSelector selector;
  std::string wrong;  // "": it was understood
};

ReadSelector ReadSelectorOf(const json& object) {
  Fields fields(object, "selector");
  ReadSelector read{.selector = ReadLabelSelector(fields)};
  if (fields.error()) read.wrong = fields.error()->message;
  return read;
}

TEST(LabelSelector, MatchesWhereAllPartsHold) {
  const std::map<std::string, std::string> kLabels = {{"gpu", "a100"}, {"zone", ""}};
  const struct {
    const char* selector;
    bool matches;
  } kCases[] = {
      {"{}", true},
      {R"({"matchLabels": null, "matchExpressions": []})", true},
      {R"({"matchLabels": {"gpu": "a100"}})", true},
      {R"({"matchLabels": {"zone": ""}})", true},
      {R"({"matchLabels": {"gpu": "h100"}})", false},
      {R"({"matchLabels": {"other": ""}})", false},  // an absent label is not an empty one
      {R"({"matchLabels": {"gpu": "a100", "other": "x"}})", false},
      {R"({"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100", "a100"]}]})",
       true},
      {R"({"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]})", false},
      {R"({"matchExpressions": [{"key": "other", "operator": "In", "values": [""]}]})", false},
      {R"({"matchExpressions": [{"key": "gpu", "operator": "NotIn", "values": ["h100"]}]})", true},
      {R"({"matchExpressions": [{"key": "gpu", "operator": "NotIn", "values": ["a100"]}]})", false},
      {R"({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["x"]}]})", true},
      {R"({"matchExpressions": [{"key": "zone", "operator": "Exists"}]})", true},
      {R"({"matchExpressions": [{"key": "other", "operator": "Exists", "values": []}]})", false},
      {R"({"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]})", true},
      {R"({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]})", false},
      {R"({"matchLabels": {"gpu": "a100"}, "matchExpressions": [{"key": "other", "operator": "Exists"}]})",
       false},
      {R"({"matchExpressions": [{"key": "gpu", "operator": "Exists"},
                                {"key": "zone", "operator": "DoesNotExist"}]})",
       false},
  };
  for (const auto& c : kCases) {
    const ReadSelector read = ReadSelectorOf(json::parse(c.selector));
    EXPECT_EQ(read.wrong, "") << c.selector;
    EXPECT_EQ(read.selector.Matches(kLabels), c.matches) << c.selector;
  }
}

TEST(LabelSelector, IsEmptyWithoutParts) {
  EXPECT_TRUE(ReadSelectorOf(json::parse("{}")).selector.empty());
  EXPECT_FALSE(ReadSelectorOf(json::parse(R"({"matchLabels": {"a": "b"}})")).selector.empty());
  EXPECT_FALSE(
      ReadSelectorOf(json::parse(R"({"matchExpressions": [{"key": "a", "operator": "Exists"}]})"))
          .selector.empty());
}

json WithLabels(int count) {
  json labels = json::object();
  for (int i = 0; i < count; ++i) labels["label-" + std::to_string(i)] = "x";
  return {{"matchLabels", labels}};
}

json WithExpressions(int count) {
  json list = json::array();
  for (int i = 0; i < count; ++i) list.push_back({{"key", "a"}, {"operator", "Exists"}});
  return {{"matchExpressions", list}};
}

json WithExpression(const json& patch) {
  json expression = {{"key", "a"}, {"operator", "In"}, {"values", {"x"}}};
  expression.merge_patch(patch);
  return {{"matchExpressions", {expression}}};
}

TEST(LabelSelector, TakesAsMuchAsTheDefinitionAllows) {
  const json kCases[] = {
      WithLabels(32),
      WithExpressions(32),
      {{"matchLabels", {{std::string(317, 'k'), std::string(63, 'v')}}}},
      WithExpression({{"key", std::string(317, 'k')}}),
      WithExpression({{"values", std::vector<std::string>(64, std::string(63, 'v'))}}),
  };
  for (const json& object : kCases) EXPECT_EQ(ReadSelectorOf(object).wrong, "") << object;
}

TEST(LabelSelector, NamesTheFieldThatIsWrong) {
  const struct {
    json selector;
    const char* wrong;
  } kCases[] = {
      {{{"matchLabels", 1}}, "selector.matchLabels: not an object of at most 32 strings"},
      {{{"matchLabels", {{"a", 1}}}}, "selector.matchLabels: not an object of at most 32 strings"},
      {WithLabels(33), "selector.matchLabels: not an object of at most 32 strings"},
      {{{"matchLabels", {{"", "x"}}}}, "selector.matchLabels: has a key that is empty or too long"},
      {{{"matchLabels", {{std::string(318, 'k'), "x"}}}},
       "selector.matchLabels: has a key that is empty or too long"},
      {{{"matchLabels", {{"a", std::string(64, 'v')}}}},
       "selector.matchLabels: has a value that is too long"},
      {{{"matchExpressions", json::object()}},
       "selector.matchExpressions: not a list of at most 32"},
      {WithExpressions(33), "selector.matchExpressions: not a list of at most 32"},
      {{{"matchExpressions", {"a"}}}, "selector.matchExpressions[0]: not an object"},
      {WithExpression({{"key", nullptr}}), "selector.matchExpressions[0].key: missing"},
      {WithExpression({{"key", 1}}), "selector.matchExpressions[0].key: not a string"},
      {WithExpression({{"key", std::string(318, 'k')}}),
       "selector.matchExpressions[0].key: longer than 317 bytes"},
      {WithExpression({{"operator", nullptr}}), "selector.matchExpressions[0].operator: missing"},
      {WithExpression({{"operator", "Gt"}}),
       "selector.matchExpressions[0].operator: none of In, NotIn, Exists, DoesNotExist"},
      {WithExpression({{"values", nullptr}}), "selector.matchExpressions[0].values: empty"},
      {WithExpression({{"operator", "NotIn"}, {"values", json::array()}}),
       "selector.matchExpressions[0].values: empty"},
      {WithExpression({{"operator", "Exists"}}),
       "selector.matchExpressions[0].values: not empty, although the operator has no values"},
      {WithExpression({{"operator", "DoesNotExist"}}),
       "selector.matchExpressions[0].values: not empty, although the operator has no values"},
      {WithExpression({{"values", std::vector<std::string>(65, "v")}}),
       "selector.matchExpressions[0].values: not a list of at most 64 strings"},
      {WithExpression({{"values", {std::string(64, 'v')}}}),
       "selector.matchExpressions[0].values: has an item that is too long"},
  };
  for (const auto& c : kCases) EXPECT_EQ(ReadSelectorOf(c.selector).wrong, c.wrong);
}

}  // namespace
}  // namespace pliant::api
