#include "operator/controller/model/reporting.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(Reporting, WritesHaveARateLimitThatAllowsBursts) {
  WriteBudget budget{.writes = 0};
  EXPECT_EQ(WhenWriteIsLeft(At(0), budget), At(2));
  EXPECT_EQ(WhenWriteIsLeft(At(1), budget), At(2));
  EXPECT_FALSE(WhenWriteIsLeft(At(2), budget));
  EXPECT_FALSE(WhenWriteIsLeft(At(1000), budget));
  EXPECT_EQ(budget.writes, WriteBudget{}.writes);
}

}  // namespace
}  // namespace pliant::controller
