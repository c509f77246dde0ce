#include "operator/planner/admission_order.h"

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

namespace pliant::planner {
namespace {

// A product of two priorities and GPU-seconds has up to 90 bits.
__extension__ using Wide = __int128;

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDefaultPriority = 5000;

// The sort key of a job, copied into one place: each plan sorts thousands, and their views are
// spread in memory. Keys are compared within a queue only.
struct AdmissionKey {
  QueuePolicy policy = QueuePolicy::kFairShare;
  std::int64_t priority = 1;
  std::int64_t waited_seconds = 0;
  std::int64_t attained_gpu_seconds = 0;
  WallTime submitted;
  JobIndex job = 0;

  bool operator<(const AdmissionKey& other) const {
    const std::strong_ordering by_policy = Compare(other);
    if (by_policy != 0) return by_policy > 0;  // the higher claim is first
    return std::tie(submitted, job) < std::tie(other.submitted, other.job);
  }

 private:
  std::strong_ordering Compare(const AdmissionKey& other) const {
    if (policy == QueuePolicy::kFifo) return std::strong_ordering::equal;
    if (policy == QueuePolicy::kPriority) return priority <=> other.priority;
    return other.SecondsToTurn() * priority <=> SecondsToTurn() * other.priority;
  }

  // From now, times the priority. It is negative once the turn has come.
  Wide SecondsToTurn() const {
    return Wide{kDefaultPriority} * (kHour + attained_gpu_seconds) -
           Wide{priority} * waited_seconds;
  }
};

std::int64_t SecondsSince(WallTime time, WallTime now) {
  return std::max<std::int64_t>(std::chrono::floor<Seconds>(now - time).count(), 0);
}

AdmissionKey KeyOf(const Model& model, JobIndex job) {
  const JobView& view = *model.jobs[job].view;
  const QueueView& queue = *model.QueueOf(job).view;
  const WallTime now = model.snapshot->now;
  const Seconds age{view.waiting.attained_at ? SecondsSince(*view.waiting.attained_at, now) : 0};
  const bool waits = !model.jobs[job].admitted_before();
  return {
      .policy = queue.policy,
      .priority = view.priority,
      .waited_seconds = waits ? SecondsSince(view.waiting.since.value_or(view.submitted), now) : 0,
      .attained_gpu_seconds = Decayed(view.waiting.attained_gpu_seconds, age, queue.half_life),
      .submitted = view.submitted,
      .job = job};
}

}  // namespace

std::int64_t Decayed(std::int64_t gpu_seconds, Seconds age, Seconds half_life) {
  const std::int64_t halvings = age / half_life;
  if (halvings > 62) return 0;
  const std::int64_t left = gpu_seconds >> halvings;
  const std::int64_t rest = (age % half_life).count();
  return left - static_cast<std::int64_t>(Wide{left} * rest / (2 * half_life.count()));
}

std::vector<JobIndex> InAdmissionOrder(const Model& model, std::vector<JobIndex> jobs) {
  std::vector<AdmissionKey> keys;
  keys.reserve(jobs.size());
  for (const JobIndex job : jobs) keys.push_back(KeyOf(model, job));
  std::ranges::sort(keys, std::less());
  std::ranges::transform(keys, jobs.begin(), &AdmissionKey::job);
  return jobs;
}

std::vector<JobIndex> JobsInTurn(const Model& model, const Sharing& sharing) {
  struct Turn {
    std::ptrdiff_t turn = 0;  // in its queue
    QueueIndex queue = 0;
    JobIndex job = 0;
    auto operator<=>(const Turn&) const = default;
  };
  std::vector<Turn> turns;
  for (QueueIndex queue = 0; queue < std::ssize(model.queues); ++queue) {
    if (model.queues[queue].is_of_pods()) continue;
    std::vector<JobIndex> waiting;
    std::ranges::copy_if(model.queues[queue].jobs, std::back_inserter(waiting), [&](JobIndex job) {
      const AdmissionState standing = sharing.shares[job].standing;
      return WaitsInQueue(standing) || FitsNoNodes(standing);
    });
    std::ptrdiff_t turn = 0;
    for (const JobIndex job : InAdmissionOrder(model, std::move(waiting))) {
      turns.push_back({turn++, queue, job});
    }
  }
  std::ranges::sort(turns);
  std::vector<JobIndex> jobs;
  std::ranges::transform(turns, std::back_inserter(jobs), &Turn::job);
  return jobs;
}

}  // namespace pliant::planner
