#include "operator/api/quantity.h"

#include <string_view>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

struct Case {
  std::string_view text;
  std::int64_t units;
  std::int64_t millis;
};

constexpr Case kGood[] = {
    {"0", 0, 0},
    {"2", 2, 2000},
    {"500m", 1, 500},
    {"0.1", 1, 100},
    {"1.5", 2, 1500},
    {"100u", 1, 1},
    {"1k", 1000, 1'000'000},
    {"2e3", 2000, 2'000'000},
    {"1E2", 100, 100'000},
    {"64Mi", 64 << 20, std::int64_t{64000} << 20},
    {"1.5Gi", std::int64_t{3} << 29, std::int64_t{3000} << 29},
    {"8Ei", INT64_MAX, INT64_MAX},
    {"99999999999999999999", INT64_MAX, INT64_MAX},
    {"1e400", INT64_MAX, INT64_MAX},
    {"0e400", 0, 0},
    {"0E-400", 0, 0},
    {"1e-400", 0, 0},
};

TEST(Quantity, ReadsWhatKubernetesWrites) {
  for (const Case& c : kGood) {
    EXPECT_EQ(ParseQuantity(c.text), c.units) << c.text;
    EXPECT_EQ(ParseQuantityMillis(c.text), c.millis) << c.text;
  }
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "-1", "m", "1x", "1 Gi", "1..2", ".", "1e", "e3", "1KI", "+1", "0x10", "NaN"}) {
    const Result<std::int64_t> parsed = ParseQuantity(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  }
}

TEST(Quantity, IsQuotedUpToACharacter) {
  const Result<std::int64_t> parsed = ParseQuantity("1" + std::string(62, 'x') + "\u00e9");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "\"1" + std::string(62, 'x') + "\" is no quantity such as 500m, 2 or 16Gi");
}

}  // namespace
}  // namespace pliant::api
