#include "base/json.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

namespace pliant {
namespace {

std::string Nested(int levels) {
  std::string text;
  for (int level = 0; level < levels; ++level) text += level % 2 == 0 ? R"({"x": )" : "[";
  text += "1";
  for (int level = levels; level > 0; --level) text += level % 2 == 1 ? "}" : "]";
  return text;
}

TEST(ParseJson, TakesAHundredLevelsAndNoMore) {
  EXPECT_EQ(ParseJson(R"({"a": [1, "b"]})"), nlohmann::json::parse(R"({"a": [1, "b"]})"));
  EXPECT_EQ(ParseJson(Nested(kMaxJsonLevels)), nlohmann::json::parse(Nested(kMaxJsonLevels)));
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonLevels + 1)).is_discarded());
  EXPECT_TRUE(ParseJson(Nested(1'000'000)).is_discarded());
  EXPECT_TRUE(ParseJson("{").is_discarded());
  EXPECT_TRUE(ParseJson("").is_discarded());
}

TEST(ParseJson, CountsWhatIsOpenAtATime) {
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += R"([{}, "[[[", "\"{{{\\"],)";
  flat += "[]]";
  EXPECT_EQ(ParseJson(flat).size(), 1001U);
  std::string in_strings = R"([")" + std::string(1000, '[') + R"(\"[\\"])";
  EXPECT_EQ(ParseJson(in_strings).size(), 1U);
}

}  // namespace
}  // namespace pliant
