#include "simulator/report/html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "simulator/report/cdf_plot.h"
#include "simulator/report/gpus_plot.h"
#include "simulator/report/markup.h"
#include "simulator/report/sizes_plot.h"
#include "simulator/report/svg.h"

namespace pliant::simulator {
namespace {

constexpr std::string_view kColourStyle = R"(
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --grid: #d0d7de; --quiet: #57606a; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --grid: #30363d; --quiet: #9198a1; } }
)";
constexpr std::string_view kPageStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 64rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
svg { max-width: 100%; height: auto; vertical-align: middle; } .patterns { position: absolute; }
.wide { overflow-x: auto; } .note, figcaption { color: var(--quiet); font-size: .9rem; } figure { margin: 1rem 0; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
td, th { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, .text { text-align: left; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 1.5rem; }
)";

// Steps of a plot of GPUs over time, and of all such plots of a page together. If 160 jobs on 64
// GPUs change their sizes in every step, the page has 0.7 MB for 3 runs and 2.1 MB for 24 runs.
constexpr std::size_t kMaxSteps = 400;
constexpr std::size_t kMinSteps = 50;
constexpr std::size_t kMaxStepsOfPage = 1600;

std::string Cell(std::string_view tag, std::string_view content) {
  return Format("<{0}>{1}</{0}>", tag, content);
}

std::string Unit(const FigureKind& kind) {
  return kind.unit.empty() ? "" : Format(" ({})", kind.unit);
}

std::string PolicyHeading(const Report& report) {
  std::string row = "<th scope=\"col\">figure</th>";
  for (const PolicyReport& policy : report.policies) {
    row += Format("<th scope=\"col\">{}</th>", EscapedName(policy.policy));
  }
  return Cell("tr", row);
}

std::string Table(const std::string& rows) {
  return Format("<div class=\"wide\"><table>\n{}</table></div>\n", rows);
}

// Figures as rows, policies as columns. `values`: by policy.
std::string FigureTable(const Report& report, const std::vector<FigureValues>& values) {
  std::string rows = PolicyHeading(report) + "\n";
  const std::span<const FigureKind> kinds = FigureKinds();
  for (std::size_t at = 0; at < kinds.size(); ++at) {
    std::string row = Format("<th scope=\"row\">{}{}</th>", kinds[at].label, Unit(kinds[at]));
    for (const FigureValues& each : values) row += Cell("td", Shown(kinds[at], each[at]));
    rows += Cell("tr", row) + "\n";
  }
  return Table(rows);
}

std::string Overview(const Report& report) {
  std::vector<FigureValues> values;
  for (const PolicyReport& policy : report.policies) values.push_back(policy.figures);
  return "<h2>Figures</h2>\n" + FigureTable(report, values) + "<p class=\"note\">" +
         Escaped(kMethod) + "</p>\n";
}

std::string PooledRows(const Report& report, std::string_view label, int digits,
                       std::optional<Distribution> PolicyReport::* pooled) {
  const std::pair<std::string_view, double Distribution::*> members[] = {
      {"mean", &Distribution::mean}, {"p50", &Distribution::p50}, {"p90", &Distribution::p90},
      {"p99", &Distribution::p99},   {"max", &Distribution::max},
  };
  std::string rows;
  for (const auto& [name, member] : members) {
    std::string row = Format("<th scope=\"row\">{}, {}</th>", label, name);
    for (const PolicyReport& policy : report.policies) {
      const std::optional<Distribution>& values = policy.*pooled;
      row += Cell("td", values ? Fixed(*values.*member, digits) : "-");
    }
    rows += Cell("tr", row) + "\n";
  }
  return rows;
}

std::string Pooled(const Report& report) {
  return "<h2>All jobs of all workloads together</h2>\n" +
         Table(PolicyHeading(report) + "\n" +
               PooledRows(report, "completion time (s)", 1,
                          &PolicyReport::pooled_completion_seconds) +
               PooledRows(report, "rho", 2, &PolicyReport::pooled_rho)) +
         "<p class=\"note\">These differ from the means over the workloads: a p99 above is the "
         "mean "
         "of the p99 of each workload.</p>\n";
}

std::string Comparison(const Report& report, const PolicyReport& policy) {
  std::string rows =
      "<tr><th scope=\"col\">figure</th><th scope=\"col\">mean difference</th>"
      "<th scope=\"col\" class=\"text\">by workload</th></tr>\n";
  for (const PairedFigure& paired : policy.against_first) {
    const FigureKind& kind = FigureKinds()[paired.kind];
    rows += Format("<tr><th scope=\"row\">{}{}</th><td>{}</td><td class=\"text\">{}</td></tr>\n",
                   kind.label, Unit(kind), ShownDifference(kind, paired.mean),
                   Escaped(Sentence(paired.signs)));
  }
  return Format("<h3>{} minus {}</h3>\n", EscapedName(policy.policy),
                EscapedName(report.policies.front().policy)) +
         Table(rows);
}

std::string Comparisons(const Report& report) {
  std::string text;
  for (std::size_t at = 1; at < report.policies.size(); ++at) {
    text += Comparison(report, report.policies[at]);
  }
  if (text.empty()) return text;
  return "<h2>Comparison in pairs</h2>\n" + text +
         "<p class=\"note\">A pair is the two runs of one workload. p is that of the exact "
         "two-sided "
         "sign test: if both policies were equally good, the probability that at least as many of "
         "the pairs agree. Equal pairs are left out.</p>\n";
}

std::string Workloads(const Report& report) {
  std::string text = "<h2>Figures by workload</h2>\n";
  for (std::size_t at = 0; at < report.workloads.size(); ++at) {
    std::vector<FigureValues> values;
    for (const PolicyReport& policy : report.policies) {
      values.push_back(ValuesOf(policy.runs[at].figures));
    }
    text += Format("<details><summary>{}</summary>\n{}</details>\n",
                   EscapedName(report.workloads[at]), FigureTable(report, values));
  }
  return text;
}

std::string Completion(const Report& report) {
  return "<h2>Completion times</h2>\n<figure>" + CdfPlot(report) +
         "<figcaption>Part of the jobs that completed within a time, over all workloads. Jobs that "
         "did not complete keep a curve below 100 %.</figcaption></figure>\n";
}

ApplicationColours ColoursOf(const Report& report) {
  std::vector<std::string> applications;
  for (const PolicyReport& policy : report.policies) {
    for (const MeasuredRun& run : policy.runs) {
      for (const JobRecord& job : run.record.jobs) applications.push_back(job.application);
    }
  }
  return ApplicationColours(std::move(applications));
}

std::string GpusOverTime(const Report& report) {
  const ApplicationColours colours = ColoursOf(report);
  const std::size_t runs = report.policies.size() * report.workloads.size();
  const std::size_t steps = std::clamp(kMaxStepsOfPage / runs, kMinSteps, kMaxSteps);
  std::string text = "<h2>GPUs over time</h2>\n" + AreaLegend(colours.names());
  text += Format(
      "<p class=\"note\">Each band is a job, the first submitted at the bottom; its colour is its "
      "application. A run with more than {} jobs has a band for each colour instead. Time is "
      "divided "
      "into at most {} steps, and a band has the mean GPUs of its job in each step. So a change "
      "within a step shows as a value between the two.</p>\n",
      kMaxBands, steps);
  for (std::size_t workload = 0; workload < report.workloads.size(); ++workload) {
    for (const PolicyReport& policy : report.policies) {
      text += Format("<h3>{}, {}</h3>\n<figure>{}</figure>\n",
                     EscapedName(report.workloads[workload]), EscapedName(policy.policy),
                     GpusPlot(policy.runs[workload].record, colours, steps));
    }
  }
  return text;
}

std::string Sizes(const Report& report) {
  std::string text =
      "<h2>Sizes of jobs</h2>\n<p class=\"note\">GPU hours by the number of GPUs that the job held "
      "at the time, over all workloads.</p>\n";
  for (std::size_t at = 0; at < report.policies.size(); ++at) {
    text += Format("<h3>{}</h3>\n<figure>{}</figure>\n", EscapedName(report.policies[at].policy),
                   SizesPlot(report, at));
  }
  return text;
}

std::string Definitions() {
  std::string items;
  for (const FigureKind& kind : FigureKinds()) {
    items += Format("<dt>{}{}</dt><dd>{}</dd>\n", kind.label, Unit(kind), Escaped(kind.definition));
  }
  return "<h2>Definitions</h2>\n<dl>\n" + items + "</dl>\n";
}

std::string Summary(const Report& report) {
  const auto count = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  const std::size_t policies = report.policies.size();
  std::size_t jobs = 0;
  for (const MeasuredRun& run : report.policies.front().runs) jobs += run.jobs.size();
  return Format("<p>{} {}, {}, {}.</p>\n", policies, policies == 1 ? "policy" : "policies",
                Counted(count(report.workloads.size()), "workload"), Counted(count(jobs), "job"));
}

}  // namespace

std::string WriteHtml(const Report& report) {
  const std::string title =
      report.title.empty() ? "Simulated scheduling" : EscapedName(report.title);
  const bool has_several = report.workloads.size() > 1;
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
         "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
         title + "</title>\n<style>" + std::string(kColourStyle) + std::string(kPageStyle) +
         std::string(PlotStyle()) + "</style></head><body>\n" + Patterns() + "<h1>" + title +
         "</h1>\n" + Summary(report) + Overview(report) + Comparisons(report) + Completion(report) +
         (has_several ? Pooled(report) + Workloads(report) : "") + Sizes(report) +
         GpusOverTime(report) + Definitions() + "</body></html>\n";
}

}  // namespace pliant::simulator
