#include "simulator/report/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <ranges>

namespace pliant::simulator {
namespace {

double Seconds(std::int64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

// The number of jobs present, summed over time.
class Presence {
 public:
  explicit Presence(const RunRecord& run) {
    for (const JobRecord& job : run.jobs) {
      points_[job.submitted].change += 1;
      points_[std::max(job.submitted, job.completed.value_or(run.end))].change -= 1;
    }
    std::int64_t present = 0;
    double sum = 0;
    std::int64_t last = 0;
    for (auto& [at, point] : points_) {
      sum += static_cast<double>(present) * Seconds(at - last);
      present += point.change;
      point.sum = sum;
      last = at;
    }
  }

  // Mean over the life of a job of the run that completed after its submission.
  double MeanOver(const JobRecord& job) const {
    const double sum = points_.at(*job.completed).sum - points_.at(job.submitted).sum;
    return sum / Seconds(*job.completed - job.submitted);
  }

 private:
  struct Point {
    std::int64_t change = 0;
    double sum = 0;  // job seconds before this time
  };
  std::map<std::int64_t, Point> points_;  // by time
};

bool MissedDeadline(const RunRecord& run, const JobRecord& job) {
  return job.deadline && job.completed.value_or(run.end) > *job.deadline;
}

std::optional<double> MakespanSeconds(const RunRecord& run) {
  if (run.jobs.empty() || !std::ranges::all_of(run.jobs, [](const JobRecord& job) {
        return job.completed.has_value();
      })) {
    return std::nullopt;
  }
  const std::int64_t first =
      std::ranges::min(run.jobs | std::views::transform(&JobRecord::submitted));
  const auto completed = [](const JobRecord& job) { return *job.completed; };
  return Seconds(std::ranges::max(run.jobs | std::views::transform(completed)) - first);
}

double CapacitySeconds(const RunRecord& run) {
  if (run.jobs.empty()) return 0;
  const std::int64_t first =
      std::ranges::min(run.jobs | std::views::transform(&JobRecord::submitted));
  return run.gpus * Seconds(run.end - first);
}

std::optional<double> MeanOf(const std::vector<double>& values) {
  const std::optional<Distribution> all = DistributionOf(values);
  return all ? std::optional(all->mean) : std::nullopt;
}

}  // namespace

std::vector<JobFigures> FiguresOfJobs(const RunRecord& run, const IsolatedSeconds& isolated) {
  const Presence presence(run);
  std::vector<JobFigures> found(run.jobs.size());
  for (std::size_t at = 0; at < run.jobs.size(); ++at) {
    const JobRecord& job = run.jobs[at];
    JobFigures& figures = found[at];
    figures.missed_deadline = MissedDeadline(run, job);
    if (job.started) figures.queueing_seconds = Seconds(*job.started - job.submitted);
    if (!job.completed) continue;
    figures.completion_seconds = Seconds(*job.completed - job.submitted);
    if (*job.completed <= job.submitted) continue;
    figures.mean_present = presence.MeanOver(job);
    figures.share_gpus =
        std::max(1, static_cast<int>(std::lround(run.gpus / figures.mean_present)));
    const std::optional<double> alone =
        isolated ? isolated(at, figures.share_gpus) : std::optional<double>();
    if (alone && *alone > 0) figures.rho = *figures.completion_seconds / *alone;
  }
  return found;
}

Figures FiguresOf(const RunRecord& run, const std::vector<JobFigures>& jobs) {
  Figures figures{.jobs = run.jobs.size()};
  std::vector<double> completion;
  std::vector<double> queueing;
  std::vector<double> rho;
  for (const JobFigures& job : jobs) {
    if (job.completion_seconds) completion.push_back(*job.completion_seconds);
    if (job.queueing_seconds) queueing.push_back(*job.queueing_seconds);
    if (job.rho) rho.push_back(*job.rho);
    if (job.missed_deadline) ++figures.missed_deadlines;
  }
  double gpu_seconds = 0;
  double useful_seconds = 0;
  double resizes = 0;
  double moves = 0;
  for (const JobRecord& job : run.jobs) {
    gpu_seconds += job.gpu_seconds;
    useful_seconds += job.useful_gpu_seconds;
    resizes += job.resizes;
    moves += job.moves;
    figures.lost_seconds += job.lost_seconds;
    if (job.deadline) ++figures.deadlines;
  }
  figures.started = queueing.size();
  figures.completed = completion.size();
  figures.completion_seconds = DistributionOf(completion);
  figures.rho = DistributionOf(rho);
  figures.makespan_seconds = MakespanSeconds(run);
  if (const double capacity = CapacitySeconds(run); capacity > 0) {
    figures.allocated_share = gpu_seconds / capacity;
    figures.useful_share = useful_seconds / capacity;
  }
  figures.queueing_seconds = MeanOf(queueing);
  if (!run.jobs.empty()) {
    figures.resizes_per_job = resizes / static_cast<double>(run.jobs.size());
    figures.moves_per_job = moves / static_cast<double>(run.jobs.size());
  }
  return figures;
}

}  // namespace pliant::simulator
