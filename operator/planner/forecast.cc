#include "operator/planner/forecast.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "operator/planner/quotient.h"
#include "operator/planner/sizes.h"

namespace pliant::planner {
namespace {

// From the creation of a learner until it trains, on nodes that have its image.
constexpr std::int64_t kStartSeconds = 15;
// Ten years; also bounds products of times and speeds.
constexpr std::int64_t kLongest = 315'360'000;
// Bound the time of a plan: steps, and jobs that are looked at because GPUs became free.
constexpr int kMaxSteps = 256;
constexpr std::int64_t kMaxLooks = 20'000;

// The speed with `learners`, in thousandths of that with one; 1: the curve is not known.
std::int64_t SpeedOf(const JobView& job, LearnerCount learners) {
  return job.training.speeds.empty() ? 1 : std::max(SpeedWith(job.training.speeds, learners), 1);
}

// Seconds, if the job gets `learners` now: at its present speed until new learners train, then at
// that of its curve. Without a curve, at the present speed.
std::optional<std::int64_t> SecondsToEnd(const JobView& job, LearnerCount learners) {
  const bool knows_alone = !job.training.speeds.empty() && job.training.alone_seconds;
  if (!knows_alone && !job.training.remaining_seconds) return std::nullopt;
  const auto training = static_cast<LearnerCount>(std::ranges::count_if(
      job.learners, [](const LearnerView& learner) { return learner.member; }));
  const std::int64_t wait = learners > training ? kStartSeconds : 0;
  const std::int64_t then = SpeedOf(job, learners);
  if (knows_alone && (training == 0 || !job.training.remaining_seconds)) {
    return wait + std::min(*job.training.alone_seconds, kLongest) * SpeedOf(job, 1) / then;
  }
  if (!job.training.remaining_seconds || training == 0) return job.training.remaining_seconds;
  const std::int64_t at_present_speed = std::min(*job.training.remaining_seconds, wait);
  const std::int64_t rest = std::min(*job.training.remaining_seconds, kLongest) - at_present_speed;
  return at_present_speed + rest * SpeedOf(job, training) / then;
}

// Times are seconds from now.
class Forecast {
 public:
  Forecast(const Model& model, const Sharing& sharing, std::span<const JobIndex> waiting)
      : model_(model), sharing_(sharing), waiting_(waiting), running_(model.jobs.size()) {}

  std::vector<std::optional<WallTime>> Run() {
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      const LearnerCount learners = sharing_.shares[job].learners;
      if (learners == 0 || model_.jobs[job].is_pod) continue;
      running_[job].learners = learners;
      SetEnd(job, SecondsToEnd(*model_.jobs[job].view, learners));
    }
    while (!ends_.empty() && steps_ < kMaxSteps) {
      const auto [end, job] = ends_.top();
      if (end > kLongest) break;
      ends_.pop();
      if (running_[job].end != end || running_[job].learners == 0) continue;  // it has changed
      now_ = end;
      ++steps_;
      free_ += model_.GpusOf(job, running_[job].learners);
      running_[job].learners = 0;
      StartWaiting();
      if (waiting_.empty()) Grow(model_.jobs[job].queue);
    }
    std::vector<std::optional<WallTime>> ends(model_.jobs.size());
    for (JobIndex job = 0; job < std::ssize(model_.jobs); ++job) {
      const auto& end = running_[job].end;
      const bool has_learners = sharing_.shares[job].learners > 0;
      if (has_learners && end && *end <= kLongest) ends[job] = model_.snapshot->now + Seconds{*end};
    }
    return ends;
  }

 private:
  struct Running {
    LearnerCount learners = 0;
    std::optional<std::int64_t> end;
  };
  struct Growth {
    Quotient claim;
    JobIndex job = 0;
    LearnerCount from = 0;
    LearnerCount to = 0;
    bool operator<(const Growth& other) const {
      return std::tuple(claim, other.job) < std::tuple(other.claim, job);
    }
  };

  void SetEnd(JobIndex job, std::optional<std::int64_t> end) {
    running_[job].end = end;
    if (end) ends_.emplace(*end, job);
  }

  void StartWaiting() {
    while (!waiting_.empty() && steps_ < kMaxSteps) {
      const JobIndex job = waiting_.front();
      const Job& of = model_.jobs[job];
      const std::int64_t gpus = model_.GpusOf(job, of.minimum);
      if (gpus > free_) return;
      free_ -= gpus;
      ++steps_;
      waiting_ = waiting_.subspan(1);
      running_[job].learners = of.minimum;
      const auto seconds = SecondsToEnd(*of.view, of.minimum);
      if (seconds) SetEnd(job, now_ + *seconds);
    }
  }

  std::optional<Growth> NextGrowth(JobIndex job) const {
    const Job& of = model_.jobs[job];
    const LearnerCount from = running_[job].learners;
    if (of.speeds) {
      const auto larger = of.speeds->Next(from, of.usable);
      if (!larger) return std::nullopt;
      return Growth{
          .claim = ClaimBySpeed(of.weight, *larger, model_.GpusOf(job, larger->to - from), 0),
          .job = job,
          .from = from,
          .to = larger->to};
    }
    const auto to = NextEfficientSize(*of.view, from, of.usable);
    if (!to) return std::nullopt;
    return Growth{
        .claim = {.numerator = of.weight, .divisor = of.needs().gpus * (2 * std::int64_t{*to} - 1)},
        .job = job,
        .from = from,
        .to = *to};
  }

  void Grow(QueueIndex queue) {
    looks_ += std::ssize(model_.queues[queue].jobs);
    if (looks_ > kMaxLooks) return;
    std::vector<Growth> claims;
    for (const JobIndex job : model_.queues[queue].jobs) {
      if (running_[job].learners == 0) continue;
      if (const auto growth = NextGrowth(job)) claims.push_back(*growth);
    }
    std::make_heap(claims.begin(), claims.end());
    while (free_ > 0 && !claims.empty() && steps_ < kMaxSteps) {
      std::pop_heap(claims.begin(), claims.end());
      const Growth growth = claims.back();
      claims.pop_back();
      const std::int64_t gpus = model_.GpusOf(growth.job, growth.to - growth.from);
      if (gpus > free_) continue;
      free_ -= gpus;
      ++steps_;
      running_[growth.job].learners = growth.to;
      SpeedUp(growth);
      if (const auto next = NextGrowth(growth.job)) {
        claims.push_back(*next);
        std::push_heap(claims.begin(), claims.end());
      }
    }
  }

  void SpeedUp(const Growth& growth) {
    const auto& end = running_[growth.job].end;
    if (!end) return;
    const JobView& view = *model_.jobs[growth.job].view;
    const std::int64_t rest = std::min(*end, kLongest) - now_;
    SetEnd(growth.job, now_ + rest * SpeedOf(view, growth.from) / SpeedOf(view, growth.to));
  }

  const Model& model_;
  const Sharing& sharing_;
  std::span<const JobIndex> waiting_;  // that still wait
  std::vector<Running> running_;       // by job
  using End = std::pair<std::int64_t, JobIndex>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t now_ = 0;
  std::int64_t free_ = 0;
  int steps_ = 0;
  std::int64_t looks_ = 0;
};

}  // namespace

std::vector<std::optional<WallTime>> ForecastEnds(const Model& model, const Sharing& sharing,
                                                  std::span<const JobIndex> waiting) {
  return Forecast(model, sharing, waiting).Run();
}

bool MayKnowEnds(const Model& model) {
  return std::ranges::any_of(model.jobs, [](const Job& job) {
    return job.active && (job.view->training.remaining_seconds ||
                          (job.view->training.alone_seconds && !job.view->training.speeds.empty()));
  });
}

}  // namespace pliant::planner
