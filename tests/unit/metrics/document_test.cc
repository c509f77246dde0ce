// docs/metrics.md lists exactly the metrics that the programs register, and the programs serve
// exactly these, with the documented labels.

#include "tests/unit/metrics/document.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/metrics/metrics.h"
#include "trainer/coordinator/job_metrics.h"
#include "trainer/process/learner_metrics.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAreArray;

std::vector<MetricFamily> ByName(std::vector<MetricFamily> families) {
  std::ranges::sort(families, {}, &MetricFamily::name);
  return families;
}

// A metric's name ends with its unit.
std::string UnitOf(const std::string& name) {
  for (const auto& [part, unit] : {std::pair("_seconds", "seconds"), std::pair("_gpus", "GPUs"),
                                   std::pair("_bytes", "bytes")}) {
    const std::size_t at = name.find(part);
    if (at == std::string::npos) continue;
    const std::string rest = name.substr(at + std::string(part).size());
    if (rest.empty() || rest == "_total") return unit;
  }
  return "";
}

void ExpectDocumented(const std::string& section, const std::vector<MetricFamily>& families) {
  EXPECT_THAT(ByName(families), ElementsAreArray(DocumentedIn(section)));
  for (const MetricFamily& family : families) {
    EXPECT_EQ(family.name.ends_with("_total"), family.type == "counter") << family.name;
    if (const std::string unit = UnitOf(family.name); !unit.empty()) {
      EXPECT_EQ(DocumentedUnit(family.name), unit) << family.name;
    } else {
      EXPECT_NE(DocumentedUnit(family.name), "") << family.name;
    }
  }
}

TEST(Document, HasTheOperatorsMetrics) {
  metrics::Metrics metrics;
  ExpectDocumented("Operator", metrics.families());
  metrics.SetLeader("lease", true);
  metrics.OnRequest("GET", "200", milliseconds(1));
  metrics.OnReflectorRestart("Pod", "TooShort");
  metrics.OnQueueAdd();
  metrics.OnQueueTake(milliseconds(1));
  metrics.OnQueueDone(milliseconds(1));
  metrics.SetQueueDepth(1);
  metrics.OnReconcile(metrics::ReconcileResult::kError, milliseconds(1));
  metrics.OnPlan(milliseconds(1), 8);
  metrics.SetJob({.name_space = "a",
                  .name = "b",
                  .waiting_since = 1,
                  .efficiency = 1,
                  .samples_per_second = {{1, 1}}});
  metrics.SetQueues({{.name = "a", .pool = "b"}});
  metrics.SetPools({{.name = "b"}});
  metrics.SetOrphans({{.name_space = "a"}});
  metrics.SetJobsInPhase("Running", 1);
  metrics.SetJobsWaiting({{"Queued", 1}});
  metrics.OnQueueEviction("a", "b");
  metrics.SetJobsQuarantined(1);
  metrics.OnWaitEnded(milliseconds(1));
  metrics.OnCoordinatorCall("OK");
  metrics.SetEventsDropped(1);
  metrics.SetNamespacesRefused(1);
  metrics.SetClockAhead(1);
  metrics.SetHeap(1);
  EXPECT_EQ(SeriesIn(metrics.Text()), SeriesOf(metrics.families()));
}

TEST(Document, HasTheCoordinatorsMetrics) {
  JobMetrics metrics("a/b");
  ExpectDocumented("Coordinator", metrics.families());
  metrics.CountMessage("hello");
  const JobProgress progress{
      .step = 1,
      .stats = Progress::Stats{.samples = 1,
                               .loss = 1,
                               .samples_per_second = 1,
                               .noise_scale = 1,
                               .batch_size = 1,
                               .evaluations = {{.accuracy = 1, .sums = {}}},
                               .last_checkpoint = CheckpointReport{.unix_seconds = 1}},
      .learners = {LearnerProgress{.times = TickTimes{}}},
      .slowest = Straggler{.slowdown = 2}};
  EXPECT_EQ(SeriesIn(metrics.Serialize(progress, 1)), SeriesOf(metrics.families()));
}

TEST(Document, HasTheLearnersMetrics) {
  LearnerMetrics metrics("a/b");
  ExpectDocumented("Learner", metrics.families());
  EXPECT_EQ(SeriesIn(metrics.Serialize({})), SeriesOf(metrics.families()));
}

}  // namespace
}  // namespace pliant
