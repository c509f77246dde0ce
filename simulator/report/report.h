#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/model/run_record.h"
#include "simulator/report/distribution.h"
#include "simulator/report/figure_kinds.h"
#include "simulator/report/figures.h"
#include "simulator/report/sign_test.h"

namespace pliant::simulator {

struct MeasuredRun {
  RunRecord record;
  std::vector<JobFigures> jobs;  // in the order of the record
  Figures figures;
};

// `isolated` may be empty: then there is no rho.
MeasuredRun Measure(RunRecord record, const IsolatedSeconds& isolated);

// One figure of a policy minus that of another one, in pairs of runs of the same workload.
struct PairedFigure {
  std::size_t kind = 0;             // in FigureKinds()
  SignTest signs;                   // is this policy better?
  std::vector<double> differences;  // by workload; those that lack the figure are left out
  std::optional<double> mean;       // of the differences
  bool operator==(const PairedFigure&) const = default;
};

// The figures of which one of two values is better and that at least one pair has. Run i of both
// has the same workload.
std::vector<PairedFigure> ComparePairs(const std::vector<MeasuredRun>& runs,
                                       const std::vector<MeasuredRun>& baseline);

struct PolicyReport {
  std::string policy;
  std::vector<MeasuredRun> runs;  // by workload
  // Means over the workloads, or totals, as each kind says. They are the published definition: the
  // p99 of a figure here is the mean of the workloads' p99.
  FigureValues figures;
  // Over all jobs of all workloads together.
  std::optional<Distribution> pooled_completion_seconds;
  std::optional<Distribution> pooled_rho;
  std::vector<PairedFigure> against_first;  // empty for the first policy
};

struct Report {
  std::string title;
  std::vector<std::string> workloads;
  std::vector<PolicyReport> policies;  // never empty; each has a run for each workload
};

// Policies and workloads come in the order in which they first appear. kInvalid if there are no
// runs, if a policy lacks a workload that another one has, or has one twice.
Result<Report> Compare(std::string title, std::vector<MeasuredRun> runs);

}  // namespace pliant::simulator
