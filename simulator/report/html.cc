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
#include "operator/web/page/saved_page.h"
#include "simulator/report/cdf_plot.h"
#include "simulator/report/gpu_time.h"
#include "simulator/report/markup.h"
#include "simulator/report/run_timeline.h"
#include "simulator/report/sizes_plot.h"
#include "simulator/report/svg.h"

namespace pliant::simulator {
namespace {

// Besides the style of the page of charts, whose colours it has.
constexpr std::string_view kStyle = R"(
:root { --grid: var(--line); }
.report { max-width: 64rem; overflow-wrap: anywhere; padding-top: 1rem; }
.report svg { max-width: 100%; height: auto; vertical-align: middle; }
.report h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; } .note, figcaption { color: var(--quiet); } figure { margin: 1rem 0; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; }
.report table { width: auto; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.report td, .report th { text-align: right; }
.report th:first-child, .report .text { text-align: left; }
.report dl { display: block; } .report dt { font-weight: 600; color: inherit; } .report dd { margin: 0 0 .5rem 1.5rem; }
)";

// Timeline documents of a page together. The 32 runs of 160 jobs each of docs/simulator.md have
// 3.2 MB.
constexpr std::size_t kMaxChartBytes = std::size_t{8} << 20;

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

// Runs with their charts, and a sentence for each that has none.
struct Charts {
  std::vector<web::SavedRun> runs;
  std::string left_out;
};

Charts ChartsOf(const Report& report) {
  Charts charts;
  std::size_t bytes = 0;
  for (std::size_t workload = 0; workload < report.workloads.size(); ++workload) {
    for (const PolicyReport& policy : report.policies) {
      const RunRecord& run = policy.runs[workload].record;
      std::string name = Format("{}, {}", ShownName(run.workload, kMaxLineBytes),
                                ShownName(run.policy, kMaxLineBytes));
      const bool is_empty = SpanOf(run) <= 0;
      std::optional<std::string> document = is_empty ? std::nullopt : TimelineOf(run);
      if (document && bytes + document->size() <= kMaxChartBytes) {
        bytes += document->size();
        charts.runs.push_back({.name = std::move(name), .document = *std::move(document)});
        continue;
      }
      charts.left_out += Format("<p class=\"note\">{}: {}</p>\n", Escaped(name),
                                is_empty ? "The run is empty."
                                         : "GPUs over time are left out, because the page would be "
                                           "too large. Give it fewer workloads or policies.");
    }
  }
  return charts;
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
  const Charts charts = ChartsOf(report);
  return web::SavedPage(
      {.title = title,
       .style = std::string(kStyle) + std::string(PlotStyle()),
       .before = "<div class=\"report\">\n<h1>" + title + "</h1>\n" + Summary(report) +
                 Overview(report) + Comparisons(report) + Completion(report) +
                 (has_several ? Pooled(report) + Workloads(report) : "") + Sizes(report) +
                 Definitions() + charts.left_out + "</div>\n"},
      charts.runs);
}

}  // namespace pliant::simulator
