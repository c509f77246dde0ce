#include "operator/controller/rounds/loop_metrics.h"

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

TEST(LoopMetrics, CountsABatchByItsResult) {
  using enum metrics::ReconcileResult;
  EXPECT_EQ(ReconcileResultOf({}), kSuccess);
  EXPECT_EQ(ReconcileResultOf({.error = kube::KubeError(ErrorCode::kConflict, "")}), kRequeue);
  EXPECT_EQ(ReconcileResultOf({.error = kube::KubeError(ErrorCode::kDenied, "")}), kError);
}

}  // namespace
}  // namespace pliant::controller
