#include "operator/api/name_space.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

TEST(Namespace, ReadsItsLabelsAndWhetherItIsBeingDeleted) {
  const struct {
    const char* object;
    bool deleting;
  } kCases[] = {
      {R"({"metadata": {"name": "a", "labels": {"team": "x"}}})", false},
      {R"({"metadata": {"name": "a", "labels": {"team": "x"}}, "status": {"phase": "Active"}})",
       false},
      {R"({"metadata": {"name": "a", "labels": {"team": "x"}}, "status": {"phase": "Terminating"}})",
       true},
      {R"({"metadata": {"name": "a", "labels": {"team": "x"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}})",
       true},
  };
  for (const auto& c : kCases) {
    const Result<Namespace> space = DecodeNamespace(nlohmann::json::parse(c.object));
    ASSERT_TRUE(space) << space.error();
    EXPECT_EQ(space->meta.name, "a");
    EXPECT_EQ(space->meta.labels.at("team"), "x");
    EXPECT_EQ(space->deleting, c.deleting) << c.object;
  }
}

TEST(Namespace, NamesWhatIsWrong) {
  const auto space = DecodeNamespace(
      nlohmann::json::parse(R"({"metadata": {"name": "a"}, "status": {"phase": 1}})"));
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().message, "status.phase: not a string");
}

}  // namespace
}  // namespace pliant::api
