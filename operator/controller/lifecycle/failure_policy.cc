#include "operator/controller/lifecycle/failure_policy.h"

#include <algorithm>
#include <cstddef>

#include "base/format.h"
#include "operator/controller/model/learner_ending.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kFailedPodsKept = 3;
// As in the CRD.
constexpr std::ptrdiff_t kMaxCounted = 4096;

bool Counts(LearnerEnd end) { return end == LearnerEnd::kFailed; }

std::string Describe(const api::Pod& pod, const LearnerEnding& ending) {
  if (!ending.exit_code) return Format("learner {}: {}", pod.meta.name, ending.message);
  return Format("learner {} exited with {}: {}", pod.meta.name, DescribeExitCode(*ending.exit_code),
                ending.message);
}

// Adds all but the newest `kept` of `pods`, which are sorted by number.
void CollectAllBut(std::size_t kept, const std::vector<const api::Pod*>& pods,
                   std::vector<const api::Pod*>& collected) {
  const std::size_t rest = pods.size() - std::min(kept, pods.size());
  collected.insert(collected.end(), pods.begin(), pods.begin() + static_cast<std::ptrdiff_t>(rest));
}

}  // namespace

FailureVerdict JudgeFailures(const api::FailurePolicy& policy, const api::FailureCount& before,
                             const std::optional<std::int64_t>& lowest_step,
                             std::int64_t committed_step, const std::vector<api::Pod>& learners) {
  FailureVerdict verdict{
      .failures = before,
      .lowest_step = std::min(lowest_step.value_or(committed_step), committed_step)};
  verdict.failures.counted.clear();
  if (committed_step > before.step) verdict.failures.count = 0;
  if (verdict.failures.count == 0) verdict.failures.step = 0;
  const bool elsewhere = verdict.lowest_step < committed_step && committed_step < before.step;

  for (const api::Pod& pod : learners) {
    const auto number = LearnerNumber(pod);
    const auto ending = EndingOf(pod);
    if (!number || !ending || !Counts(ending->end)) continue;
    verdict.failures.counted.push_back(*number);
    if (std::ranges::contains(before.counted, *number)) continue;
    if (verdict.newly_failed == 0 && elsewhere) verdict.failures.count = 0;
    ++verdict.newly_failed;
    ++verdict.failures.count;
    verdict.failures.step = committed_step;
    verdict.lowest_step = committed_step;
    verdict.newest = Describe(pod, *ending);
    if (ending->exit_code &&
        std::ranges::contains(policy.permanent_exit_codes, *ending->exit_code)) {
      verdict.fatal = FatalFailure{"PermanentExitCode", verdict.newest};
    }
  }
  std::ranges::sort(verdict.failures.counted);
  if (std::ssize(verdict.failures.counted) > kMaxCounted) {
    verdict.failures.counted.erase(verdict.failures.counted.begin(),
                                   verdict.failures.counted.end() - kMaxCounted);
  }
  if (!verdict.fatal && verdict.newly_failed > 0 && verdict.failures.count > policy.max_failures) {
    verdict.fatal = FatalFailure{
        "TooManyFailures",
        Format("{} without a newly committed step, and spec.failurePolicy.maxFailures is {}; "
               "the last: {}",
               Counted(verdict.failures.count, "failure"), policy.max_failures, verdict.newest)};
  }
  return verdict;
}

std::vector<const api::Pod*> PodsToCollect(const std::vector<api::Pod>& learners,
                                           const api::JobStatus& status) {
  std::vector<const api::Pod*> collected;
  std::vector<const api::Pod*> failed;
  std::vector<const api::Pod*> without_logs;
  for (const api::Pod& pod : learners) {
    const auto ending = EndingOf(pod);
    if (!ending || pod.deleting()) continue;
    switch (ending->end) {
      case LearnerEnd::kCompleted:
        break;
      case LearnerEnd::kDrained:
      case LearnerEnd::kDisrupted:
        collected.push_back(&pod);
        break;
      case LearnerEnd::kNodeFault:
        without_logs.push_back(&pod);
        break;
      case LearnerEnd::kFailed:
        if (status.finished() ||
            std::ranges::contains(status.failures.counted, LearnerNumber(pod).value_or(-1))) {
          failed.push_back(&pod);
        }
        break;
    }
  }
  CollectAllBut(kFailedPodsKept, failed, collected);
  CollectAllBut(kFailedPodsKept - std::min(kFailedPodsKept, failed.size()), without_logs,
                collected);
  return collected;
}

}  // namespace pliant::controller
