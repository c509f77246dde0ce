#include "operator/planner/admission_order.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

namespace pliant::planner {
namespace {

using testing::ElementsAre;

constexpr Seconds kHour{3600};
constexpr Seconds kDay{24 * 3600};

TEST(AdmissionOrder, AttainedTimeCountsHalfAfterEachHalfLife) {
  EXPECT_EQ(Decayed(1000, Seconds{0}, kDay), 1000);
  EXPECT_EQ(Decayed(1000, kDay, kDay), 500);
  EXPECT_EQ(Decayed(1000, kDay + kDay / 2, kDay), 375) << "linear in between";
  EXPECT_EQ(Decayed(1000, 2 * kDay, kDay), 250);
  EXPECT_EQ(Decayed(1000, 10'000 * kDay, kDay), 0);
  EXPECT_EQ(Decayed(100'000'000'000'000, Seconds{1}, Seconds{31'536'000}), 99'999'998'414'511)
      << "of large numbers too";
}

struct OrderCase {
  std::string name;
  QueueView queue;
  std::vector<JobOf> jobs;
  std::vector<std::string> want;
  Seconds now = kHour;
};

JobOf Attained(const std::string& name, std::int64_t gpu_seconds, Seconds ago) {
  JobOf job(name);
  job.Attained(gpu_seconds);
  job.view.waiting.attained_at = kStart + kHour - ago;
  return job;
}

const OrderCase kOrders[] = {
    {.name = "priority orders jobs that never ran",
     .jobs = {JobOf("a").Priority(1000), JobOf("b").Priority(3000), JobOf("c").Priority(2000)},
     .want = {"b", "c", "a"}},
    {.name = "of equal priority, the one submitted first",
     .jobs = {JobOf("a").Submitted(Seconds{2}), JobOf("b").Submitted(Seconds{1})},
     .want = {"b", "a"}},
    {.name = "a job of half the default priority that has waited an hour longer is as far",
     .jobs = {JobOf("a").Submitted(kHour), JobOf("b").Priority(2500).Submitted(Seconds{0})},
     .want = {"b", "a"}},
    {.name = "and one second less is behind",
     .jobs = {JobOf("a").Submitted(kHour), JobOf("b").Priority(2500).Submitted(Seconds{1})},
     .want = {"a", "b"}},
    {.name = "and so it stays, however long both wait",
     .jobs = {JobOf("a").Submitted(kHour), JobOf("b").Priority(2500).Submitted(Seconds{0})},
     .want = {"b", "a"},
     .now = 30 * kDay},
    {.name = "least attained time first",
     .jobs = {JobOf("a").Attained(7200), JobOf("b").Attained(3600), JobOf("c")},
     .want = {"c", "b", "a"}},
    {.name = "GPU time of yesterday counts half",
     .jobs = {Attained("a", 7000, Seconds{0}), Attained("b", 13'000, kDay)},
     .want = {"b", "a"}},
    {.name = "or less, if the queue forgets faster",
     .queue = {.half_life = kHour},
     .jobs = {Attained("a", 2000, Seconds{0}), Attained("b", 13'000, 3 * kHour)},
     .want = {"b", "a"}},
    {.name = "policy Priority compares priorities only",
     .queue = {.policy = QueuePolicy::kPriority},
     .jobs = {JobOf("a"), JobOf("b").Priority(5001).Attained(1'000'000).Submitted(Seconds{9}),
              JobOf("c").Submitted(Seconds{1})},
     .want = {"b", "a", "c"}},
    {.name = "policy Fifo compares times of submission only",
     .queue = {.policy = QueuePolicy::kFifo},
     .jobs = {JobOf("a").Priority(9000).Submitted(Seconds{2}),
              JobOf("b").Attained(1'000'000).Submitted(Seconds{1})},
     .want = {"b", "a"}},
};

TEST(AdmissionOrder, ByPolicy) {
  for (const OrderCase& each : kOrders) {
    SCOPED_TRACE(each.name);
    ClusterSnapshot snapshot{.now = kStart + each.now, .queues = {each.queue}};
    for (const JobOf& job : each.jobs) snapshot.jobs.push_back(job.view);
    FitMemory memory;
    const Model model = MakeModel(snapshot, {}, {}, memory);
    std::vector<std::string> order;
    for (const JobIndex job : InAdmissionOrder(model, model.queues.front().jobs)) {
      order.push_back(model.jobs[job].view->key.name);
    }
    EXPECT_EQ(order, each.want);
  }
}

}  // namespace
}  // namespace pliant::planner
