#include "tests/bench/operator/rows.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::bench {
namespace {

using testing::HasSubstr;

TEST(BenchRows, QuantilesAreOfWhatWasMeasured) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2}, 0.99), 3);
  EXPECT_EQ(Quantile({}, 0.99), std::nullopt) << "0 would be the best possible value";
}

TEST(BenchRows, AnAimIsMetByAValueOnly) {
  struct Case {
    const char* name;
    Row row;
    bool met;
  };
  const Case kCases[] = {
      {"less than is allowed", {.name = "x", .value = 99, .unit = "ms", .aim = 100}, true},
      {"more than is allowed", {.name = "x", .value = 101, .unit = "ms", .aim = 100}, false},
      {"more of what is good",
       {.name = "x", .value = 101, .unit = "1/s", .aim = 100, .more_is_better = true},
       true},
      {"too little of what is good",
       {.name = "x", .value = 99, .unit = "1/s", .aim = 100, .more_is_better = true},
       false},
      {"zero where none is allowed", {.name = "x", .value = 0, .unit = "", .aim = 0}, true},
      {"nothing was measured", {.name = "x", .unit = "ms", .aim = 100}, false},
      {"nothing was measured of what is good",
       {.name = "x", .unit = "1/s", .aim = 100, .more_is_better = true},
       false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(IsMet(c.row), c.met);
    EXPECT_THAT(Line(c.row), HasSubstr(c.met ? ": met)" : ": missed)"));
    if (!c.row.value) {
      EXPECT_THAT(Line(c.row), HasSubstr("no samples"));
    }
  }
}

TEST(BenchRows, AreWrittenAsJson) {
  const std::string file = testing::TempDir() + "/bench-rows.json";
  Write({{.name = "a", .value = 50, .unit = "ms", .rival = 100, .aim = 60},
         {.name = "b", .unit = "ms", .rival = 100, .aim = 60}},
        file);
  std::ifstream text(file);
  EXPECT_EQ(nlohmann::json::parse(text), nlohmann::json::parse(R"([
      {"name": "a", "value": 50.0, "unit": "ms", "rival": 100.0, "ratio": 2.0, "aim": 60.0,
       "met": true},
      {"name": "b", "value": null, "unit": "ms", "rival": 100.0, "aim": 60.0, "met": false}])"));
}

}  // namespace
}  // namespace pliant::bench
