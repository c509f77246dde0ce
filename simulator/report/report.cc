#include "simulator/report/report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "simulator/report/markup.h"

namespace pliant::simulator {
namespace {

// Names in the order in which they first appear, and the index of each.
class Names {
 public:
  std::size_t IndexOf(const std::string& name) {
    const auto [at, is_new] = index_.emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return at->second;
  }
  std::size_t size() const { return names_.size(); }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> index_;
};

FigureValues OverAll(const std::vector<MeasuredRun>& runs) {
  FigureValues all;
  for (const FigureKind& kind : FigureKinds()) {
    std::optional<double> sum = 0;
    for (const MeasuredRun& run : runs) {
      const std::optional<double> value = kind.of(run.figures);
      sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
    }
    if (sum && kind.over == OverWorkloads::kMean) *sum /= static_cast<double>(runs.size());
    all.push_back(sum);
  }
  return all;
}

std::optional<Distribution> Pooled(const std::vector<MeasuredRun>& runs,
                                   std::optional<double> JobFigures::* figure) {
  std::vector<double> values;
  for (const MeasuredRun& run : runs) {
    for (const JobFigures& job : run.jobs) {
      if (job.*figure) values.push_back(*(job.*figure));
    }
  }
  return DistributionOf(std::move(values));
}

PairedFigure PairedOf(std::size_t index, const std::vector<MeasuredRun>& runs,
                      const std::vector<MeasuredRun>& baseline) {
  const FigureKind& kind = FigureKinds()[index];
  PairedFigure paired{.kind = index};
  for (std::size_t at = 0; at < std::min(runs.size(), baseline.size()); ++at) {
    const std::optional<double> mine = kind.of(runs[at].figures);
    const std::optional<double> other = kind.of(baseline[at].figures);
    if (mine && other) paired.differences.push_back(*mine - *other);
  }
  const auto lower = static_cast<int>(
      std::ranges::count_if(paired.differences, [](double value) { return value < 0; }));
  const auto higher = static_cast<int>(
      std::ranges::count_if(paired.differences, [](double value) { return value > 0; }));
  const int ties = static_cast<int>(paired.differences.size()) - lower - higher;
  paired.signs = kind.better == Better::kLower ? TestSigns(lower, higher, ties)
                                               : TestSigns(higher, lower, ties);
  if (!paired.differences.empty()) {
    paired.mean = std::accumulate(paired.differences.begin(), paired.differences.end(), 0.0) /
                  static_cast<double>(paired.differences.size());
  }
  return paired;
}

}  // namespace

MeasuredRun Measure(RunRecord record, const IsolatedSeconds& isolated) {
  std::vector<JobFigures> jobs = FiguresOfJobs(record, isolated);
  Figures figures = FiguresOf(record, jobs);
  return {.record = std::move(record), .jobs = std::move(jobs), .figures = figures};
}

std::vector<PairedFigure> ComparePairs(const std::vector<MeasuredRun>& runs,
                                       const std::vector<MeasuredRun>& baseline) {
  std::vector<PairedFigure> all;
  for (std::size_t index = 0; index < FigureKinds().size(); ++index) {
    if (FigureKinds()[index].better == Better::kNeither) continue;
    PairedFigure paired = PairedOf(index, runs, baseline);
    if (paired.mean) all.push_back(std::move(paired));
  }
  return all;
}

Result<Report> Compare(std::string title, std::vector<MeasuredRun> runs) {
  if (runs.empty()) return Invalid("there are no runs; name a policy and a workload");
  Names policies;
  Names workloads;
  std::map<std::pair<std::size_t, std::size_t>, MeasuredRun*> cells;  // by policy and workload
  for (MeasuredRun& run : runs) {
    const std::size_t policy = policies.IndexOf(run.record.policy);
    const std::size_t workload = workloads.IndexOf(run.record.workload);
    if (!cells.emplace(std::pair(policy, workload), &run).second) {
      return Invalid(Format("there are two runs of policy {} on workload {}; remove one",
                            ShownName(run.record.policy, kMaxLineBytes),
                            ShownName(run.record.workload, kMaxLineBytes)));
    }
  }
  Report report{.title = std::move(title), .workloads = workloads.all()};
  for (std::size_t policy = 0; policy < policies.size(); ++policy) {
    PolicyReport one{.policy = policies.all()[policy]};
    for (std::size_t workload = 0; workload < workloads.size(); ++workload) {
      const auto cell = cells.find({policy, workload});
      if (cell == cells.end()) {
        return Invalid(Format("policy {} has no run on workload {}; run all policies on it",
                              ShownName(one.policy, kMaxLineBytes),
                              ShownName(report.workloads[workload], kMaxLineBytes)));
      }
      one.runs.push_back(std::move(*cell->second));
    }
    one.figures = OverAll(one.runs);
    one.pooled_completion_seconds = Pooled(one.runs, &JobFigures::completion_seconds);
    one.pooled_rho = Pooled(one.runs, &JobFigures::rho);
    if (policy > 0) one.against_first = ComparePairs(one.runs, report.policies.front().runs);
    report.policies.push_back(std::move(one));
  }
  return report;
}

}  // namespace pliant::simulator
