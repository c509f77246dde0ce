#include "simulator/report/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "operator/replay/text_table.h"
#include "simulator/report/markup.h"

namespace pliant::simulator {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kColumns = 100;
constexpr std::size_t kMaxPolicyBytes = 16;  // in a row of figures
constexpr std::size_t kMaxUndone = 10;       // jobs of a run that are named

// Figures of one table, so that its rows fit into the columns.
constexpr std::initializer_list<std::string_view> kTimes = {"jobs",
                                                            "jobs_completed",
                                                            "completion_mean_seconds",
                                                            "completion_p50_seconds",
                                                            "completion_p90_seconds",
                                                            "completion_p99_seconds",
                                                            "makespan_seconds",
                                                            "queueing_mean_seconds"};
constexpr std::initializer_list<std::string_view> kUse = {
    "allocated_share", "useful_share", "resizes_per_job", "moves_per_job", "missed_deadlines",
    "lost_seconds",    "rho_mean",     "rho_p99",         "rho_max"};

std::size_t IndexOf(std::string_view key) {
  const std::span<const FigureKind> kinds = FigureKinds();
  const auto at = std::ranges::find(kinds, key, &FigureKind::key);
  return static_cast<std::size_t>(at - kinds.begin());
}

// `values`: by policy.
std::string FiguresText(const Report& report, const std::vector<FigureValues>& values,
                        std::initializer_list<std::string_view> keys) {
  Rows rows = {{"POLICY"}};
  for (const std::string_view key : keys) {
    rows.front().emplace_back(FigureKinds()[IndexOf(key)].column);
  }
  for (std::size_t policy = 0; policy < report.policies.size(); ++policy) {
    std::vector<std::string>& row =
        rows.emplace_back(1, ShownName(report.policies[policy].policy, kMaxPolicyBytes));
    for (const std::string_view key : keys) {
      const std::size_t index = IndexOf(key);
      row.push_back(Shown(FigureKinds()[index], values[policy][index]));
    }
  }
  return replay::TextTable(rows);
}

std::string WorkloadsText(const Report& report) {
  std::string text;
  for (std::size_t at = 0; at < report.workloads.size(); ++at) {
    std::vector<FigureValues> values;
    for (const PolicyReport& policy : report.policies) {
      values.push_back(ValuesOf(policy.runs[at].figures));
    }
    text += Format("\nworkload {}\n", ShownName(report.workloads[at], kMaxLineBytes)) +
            FiguresText(report, values, kTimes) + FiguresText(report, values, kUse);
  }
  return text;
}

std::string PooledText(const Report& report) {
  Rows rows = {{"POLICY", "DONE", "MEAN", "P50", "P90", "P99", "MAX", "RHO P99", "RHO MAX"}};
  for (const PolicyReport& policy : report.policies) {
    std::vector<std::string>& row = rows.emplace_back(1, ShownName(policy.policy, kMaxPolicyBytes));
    const auto& times = policy.pooled_completion_seconds;
    const auto& rho = policy.pooled_rho;
    row.push_back(std::to_string(times ? times->count : 0));
    for (const auto member : {&Distribution::mean, &Distribution::p50, &Distribution::p90,
                              &Distribution::p99, &Distribution::max}) {
      row.push_back(times ? Fixed(*times.*member, 1) : "-");
    }
    for (const auto member : {&Distribution::p99, &Distribution::max}) {
      row.push_back(rho ? Fixed(*rho.*member, 2) : "-");
    }
  }
  return "\nall jobs of all workloads together, seconds\n" + replay::TextTable(rows);
}

// Figures that are equal in all workloads are left out.
std::string PairedText(const Report& report) {
  std::string text;
  for (const PolicyReport& policy : report.policies) {
    Rows rows = {{"FIGURE", "DIFFERENCE", "UNIT", ""}};
    for (const PairedFigure& paired : policy.against_first) {
      if (paired.signs.better + paired.signs.worse == 0) continue;
      const FigureKind& kind = FigureKinds()[paired.kind];
      rows.push_back({std::string(kind.label), ShownDifference(kind, paired.mean),
                      std::string(kind.unit), Sentence(paired.signs)});
    }
    if (policy.against_first.empty()) continue;
    text += Format("\n{} minus {}, mean of the differences\n",
                   ShownName(policy.policy, kMaxPolicyBytes),
                   ShownName(report.policies.front().policy, kMaxPolicyBytes));
    text += rows.size() > 1 ? replay::TextTable(rows) : "no figure differs\n";
  }
  return text;
}

// Jobs that were not done at the end, and why.
std::string UndoneText(const Report& report) {
  std::string text;
  for (const PolicyReport& policy : report.policies) {
    for (const MeasuredRun& run : policy.runs) {
      const auto is_undone = [](const JobRecord& job) { return !job.completed; };
      const std::int64_t count = std::ranges::count_if(run.record.jobs, is_undone);
      if (count == 0) continue;
      text +=
          Format("\n{}, {}: {} not done at the end\n", ShownName(policy.policy, kMaxPolicyBytes),
                 ShownName(run.record.workload, kMaxLineBytes), Counted(count, "job"));
      for (const JobRecord& job :
           run.record.jobs | std::views::filter(is_undone) | std::views::take(kMaxUndone)) {
        const std::string why = job.undone.empty() ? "no plan gave a reason" : job.undone;
        text += Format("  {}: {}\n", ShownName(job.name, kMaxPolicyBytes), why);
      }
    }
  }
  return text;
}

// Lines of at most kColumns bytes, broken at spaces.
std::string Wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > kColumns) {
    const std::size_t space = text.rfind(' ', kColumns);
    if (space == std::string_view::npos) break;
    lines += std::string(text.substr(0, space)) + "\n";
    text.remove_prefix(space + 1);
  }
  return lines + std::string(text) + "\n";
}

}  // namespace

std::string WriteText(const Report& report) {
  const std::size_t workloads = report.workloads.size();
  std::vector<FigureValues> values;
  for (const PolicyReport& policy : report.policies) values.push_back(policy.figures);
  std::string text = report.title.empty() ? "" : ShownName(report.title, kMaxLineBytes) + "\n\n";
  text += Format("{}: completion times, makespan and queueing time in seconds\n",
                 Counted(static_cast<std::int64_t>(workloads), "workload"));
  text += FiguresText(report, values, kTimes);
  text += "\nGPU time of the cluster, changes per job, finish-time fairness\n";
  text += FiguresText(report, values, kUse);
  if (workloads > 1) text += PooledText(report) + WorkloadsText(report);
  text += PairedText(report);
  text += UndoneText(report);
  text += "\n" + Wrapped(kMethod);
  text += "\n" + Wrapped(FigureKinds()[IndexOf("rho_mean")].definition);
  return replay::Printable(text);
}

}  // namespace pliant::simulator
