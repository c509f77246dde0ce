#include "simulator/jsa/jsa_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/format.h"
#include "simulator/jsa/dp.h"
#include "simulator/jsa/node_gpus.h"

namespace pliant::simulator {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The rates of an application with one batch, or with the fastest one for each size.
struct Curve {
  const Profile* profile = nullptr;
  std::vector<int> batches;   // from which the job has the fastest one
  double alone = 1;           // samples a second: the unit of speedups
  std::vector<double> rates;  // samples a second, by GPUs from 1; 0: not possible
  SizeValues speedups;        // of the possible sizes
};

Curve CurveOf(const Profile& profile, const std::vector<int>& batches, const SampleRules& rules) {
  Curve curve{.profile = &profile,
              .batches = batches,
              .alone = RateAlone(profile),
              .rates = FastestRates(profile, batches, rules),
              .speedups = {}};
  for (std::size_t index = 0; index < curve.rates.size(); ++index) {
    if (curve.rates[index] == 0 && curve.speedups.values.empty()) continue;
    if (curve.speedups.values.empty()) curve.speedups.min_size = static_cast<int>(index) + 1;
    curve.speedups.values.push_back(curve.rates[index] > 0
                                        ? curve.rates[index] / curve.alone
                                        : -std::numeric_limits<double>::infinity());
  }
  CHECK(!curve.speedups.values.empty(), "BatchesOf returns batches that some size can train");
  return curve;
}

struct ActiveJob {
  std::size_t index = 0;  // in the input
  const Curve* curve = nullptr;
  double samples_left = 0;
  int gpus = 0;
  NodeGpus::Shares shares;       // of these GPUs
  double rate = 0;               // samples a second
  std::int64_t trains_from = 0;  // ms; before that it restarts
  std::int64_t ends_at = kNever;
};

class Run {
 public:
  Run(const Profiles& profiles, std::span<const SamplesJob> jobs, const JsaOptions& options)
      : profiles_(profiles),
        jobs_(jobs),
        options_(options),
        record_{.gpus = options.nodes * options.rules.gpus_per_node},
        nodes_(options.nodes, options.rules.gpus_per_node) {
    for (std::size_t index = 0; index < jobs.size(); ++index) {
      record_.jobs.push_back({.name = Format("job-{:04}", index),
                              .application = profiles[jobs[index].application].application(),
                              .submitted = jobs[index].submitted});
    }
  }

  RunRecord ToEnd() {
    while (true) {
      const std::int64_t next = NextTime();
      if (next == kNever) break;
      CHECK(next >= now_, "time does not go back");
      AdvanceTo(next);
      EndJobs();
      TakeArrivals();
      if (decide_at_ == now_) Decide();
    }
    CHECK(active_.empty(), "every job fits alone");
    record_.end = now_;
    return std::move(record_);
  }

 private:
  std::int64_t NextTime() const {
    std::int64_t next = decide_at_;
    if (arrived_ < jobs_.size()) next = std::min(next, jobs_[arrived_].submitted);
    for (const ActiveJob& job : active_) next = std::min(next, job.ends_at);
    return next;
  }

  void AdvanceTo(std::int64_t time) {
    for (ActiveJob& job : active_) {
      if (job.gpus == 0) continue;
      JobRecord& record = record_.jobs[job.index];
      record.gpu_seconds += job.gpus * static_cast<double>(time - now_) / 1000;
      const std::int64_t from = std::max(now_, job.trains_from);
      if (time <= from) continue;
      if (!record.started) record.started = from;
      const double seconds = static_cast<double>(time - from) / 1000;
      job.samples_left -= job.rate * seconds;
      record.useful_gpu_seconds += job.rate / job.curve->alone * seconds;
    }
    now_ = time;
  }

  void EndJobs() {
    std::erase_if(active_, [&](const ActiveJob& job) {
      if (job.ends_at > now_) return false;
      JobRecord& record = record_.jobs[job.index];
      record.completed = now_;
      record.sizes.push_back({.at = now_});
      nodes_.GiveBack(job.shares);
      RequestDecision();
      return true;
    });
  }

  void TakeArrivals() {
    for (; arrived_ < jobs_.size() && jobs_[arrived_].submitted == now_; ++arrived_) {
      active_.push_back({.index = arrived_,
                         .curve = &CurveFor(jobs_[arrived_]),
                         .samples_left = jobs_[arrived_].samples});
      RequestDecision();
    }
  }

  void RequestDecision() {
    const std::int64_t every = std::max<std::int64_t>(options_.decide_every, 1);
    decide_at_ = std::min(decide_at_, (now_ + every - 1) / every * every);
  }

  void Decide() {
    decide_at_ = kNever;
    ++record_.plans;
    std::vector<SizeValues> sizes;
    int smallest = 0;  // GPUs of the jobs that fit, each with its smallest size
    for (const ActiveJob& job : active_) {
      smallest += job.curve->speedups.min_size;
      if (smallest > record_.gpus) break;
      sizes.push_back(job.curve->speedups);
    }
    const std::optional<std::vector<int>> best = MaxTotalValue(sizes, record_.gpus);
    CHECK(best.has_value(), "the smallest sizes fit");
    std::vector<std::pair<ActiveJob*, int>> changed;  // with the new size
    for (std::size_t index = 0; index < best->size(); ++index) {
      ActiveJob& job = active_[index];
      if (job.gpus == (*best)[index]) continue;
      nodes_.GiveBack(job.shares);
      changed.emplace_back(&job, (*best)[index]);
    }
    std::ranges::stable_sort(changed, std::greater{}, &std::pair<ActiveJob*, int>::second);
    for (const auto& [job, gpus] : changed) Resize(*job, gpus);
  }

  // The job holds no nodes.
  void Resize(ActiveJob& job, int gpus) {
    JobRecord& record = record_.jobs[job.index];
    if (job.gpus > 0) ++record.resizes;
    record.sizes.push_back({.at = now_, .gpus = gpus});
    job.gpus = gpus;
    job.shares = nodes_.Take(gpus);
    job.rate = options_.rules.depends_on_nodes
                   ? FastestRate(*job.curve->profile, PlacementOf(job.shares), job.curve->batches,
                                 options_.rules)
                   : job.curve->rates[static_cast<std::size_t>(gpus) - 1];
    job.trains_from = now_ + options_.restart;
    const double millis = std::ceil(1000 * std::max(job.samples_left, 0.0) / job.rate);
    job.ends_at = job.trains_from + static_cast<std::int64_t>(millis);
  }

  const Curve& CurveFor(const SamplesJob& job) {
    const Profile& profile = profiles_[job.application];
    std::vector<int> batches = BatchesOf(profile, options_.rules);
    const auto random = static_cast<std::size_t>(job.random * static_cast<double>(batches.size()));
    switch (options_.batch) {
      case BatchChoice::kElastic:
        break;
      case BatchChoice::kMax:
        batches = {batches.back()};
        break;
      case BatchChoice::kRandom:
        batches = {batches[random]};
        break;
      case BatchChoice::kMin:
        batches = {batches.front()};
        break;
    }
    const std::pair key(job.application, batches);
    const auto found = curves_.find(key);
    if (found != curves_.end()) return found->second;
    return curves_.emplace(key, CurveOf(profile, batches, options_.rules)).first->second;
  }

  const Profiles& profiles_;
  const std::span<const SamplesJob> jobs_;
  const JsaOptions options_;
  RunRecord record_;
  NodeGpus nodes_;
  std::map<std::pair<std::size_t, std::vector<int>>, Curve> curves_;
  std::vector<ActiveJob> active_;  // in the order of arrival
  std::size_t arrived_ = 0;
  std::int64_t now_ = 0;
  std::int64_t decide_at_ = kNever;
};

}  // namespace

RunRecord RunJsa(const Profiles& profiles, std::span<const SamplesJob> jobs,
                 const JsaOptions& options) {
  CHECK(options.nodes > 0 && options.decide_every >= 0 && options.restart >= 0, "no such cluster");
  return Run(profiles, jobs, options).ToEnd();
}

}  // namespace pliant::simulator
