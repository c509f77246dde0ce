#include "tests/scenario/planner/expectations.h"

#include <algorithm>
#include <map>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "tests/scenario/planner/codes.h"
#include "tests/scenario/planner/fields.h"
#include "tests/unit/planner/builders.h"

namespace pliant::planner {
namespace {

std::string Print(const auto& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
std::string Print(const std::map<std::string, int>& nodes) {
  std::string text;
  for (const auto& [node, learners] : nodes) {
    text += (text.empty() ? "" : ", ") + node + ": " + std::to_string(learners);
  }
  return "{" + text + "}";
}

// The expected values of one job or queue.
class Comparison {
 public:
  Comparison(const YAML::Node& expected, std::string what, std::string whole,
             std::vector<Mismatch>& mismatches)
      : fields_(expected, what), what_(what), whole_(std::move(whole)), mismatches_(mismatches) {}
  ~Comparison() = default;
  Comparison(const Comparison&) = delete;

  template <typename T>
  void Expect(const std::string& key, const T& actual) {
    const auto node = fields_.Take(key);
    if (!node) return;
    const T expected = ValueOf<T>(*node, key + " of " + what_);
    if (expected == actual) return;
    mismatches_.push_back({node->Mark().line + 1, what_ + ": " + key + " is " + Print(actual) +
                                                      ", expected " + Print(expected) + "\n  " +
                                                      whole_});
  }
  void ExpectWord(const std::string& key, std::string_view actual,
                  std::span<const std::string_view> words) {
    fields_.ReadWord(key, words);  // throws if it is none of these
    Expect(key, std::string(actual));
  }
  void Done() const { fields_.Done(); }

 private:
  Fields fields_;
  const std::string what_;
  const std::string whole_;
  std::vector<Mismatch>& mismatches_;
};

}  // namespace

void CompareJobs(const YAML::Node& expected, const ClusterSnapshot& snapshot, const Plan& plan,
                 std::vector<Mismatch>& mismatches) {
  ForEach(expected, "plan", [&](const std::string& job, const YAML::Node& value) {
    const auto decision =
        std::ranges::find(plan.decisions, job, [](const Decision& each) { return each.job.name; });
    if (decision == plan.decisions.end()) throw Mistake(value, "there is no job " + job);
    Comparison of(value, "job " + job, Print(*decision), mismatches);
    of.Expect("learners", decision->to);
    of.ExpectWord("reason", ToString(decision->reason.code), AllReasons());
    of.Expect("says", decision->reason.sentence);
    of.Expect("entitled", decision->entitled_gpus);
    of.ExpectWord("limitedBy", ToString(decision->limited_by), AllGrowthLimits());
    of.Expect("jobsBefore", decision->jobs_before.value_or(-1));
    of.Expect("reclaimedBy", decision->reclaimed_by);
    of.Expect("on", PlacedOn(snapshot, *decision));
    of.Expect("product", decision->gpu_product);
    const auto seconds = [&](const std::optional<WallTime>& time) {
      return time ? std::chrono::floor<Seconds>(*time - snapshot.now).count() : -1;
    };
    of.Expect("startsIn", seconds(decision->starts_at));
    of.Expect("endsIn", seconds(decision->ends_at));
    of.Expect("requests", decision->nodes ? decision->nodes->learners : 0);
    of.Expect("requestsProduct", decision->nodes ? decision->nodes->gpu_product : "");
    of.Done();
  });
}

void CompareQueues(const YAML::Node& expected, const Plan& plan,
                   std::vector<Mismatch>& mismatches) {
  ForEach(expected, "queues", [&](const std::string& queue, const YAML::Node& value) {
    const auto share = std::ranges::find(plan.queues, queue, &QueueShare::queue);
    if (share == plan.queues.end()) throw Mistake(value, "there is no queue " + queue);
    Comparison of(value, "queue " + queue, Print(*share), mismatches);
    of.Expect("demand", share->demand);
    of.Expect("entitled", share->entitled);
    of.Expect("allocated", share->allocated);
    of.Expect("borrowed", share->borrowed);
    of.Expect("lent", share->lent);
    of.Expect("running", share->running);
    of.Expect("waiting", share->waiting);
    of.ExpectWord("state", ToString(share->state), AllQueueStates());
    of.Expect("says", share->sentence);
    of.Done();
  });
}

std::int64_t IdleGpus(const Plan& plan) {
  std::int64_t idle = plan.capacity_gpus;
  for (const QueueShare& share : plan.queues) idle -= share.allocated;
  return idle;
}

}  // namespace pliant::planner
