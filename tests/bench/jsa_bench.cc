// The comparison of arXiv:2006.13878: batches that change with the GPUs against fixed ones, under
// the same scheduler. Prints the whole table.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "simulator/events/event_engine.h"
#include "simulator/events/run_options.h"
#include "simulator/jsa/jsa_run.h"
#include "simulator/jsa/live_input.h"
#include "simulator/jsa/poisson_jobs.h"
#include "simulator/jsa/sample_rates.h"
#include "simulator/model/profile.h"
#include "simulator/model/read_profiles.h"
#include "simulator/model/run_record.h"
#include "tests/bench/operator/rows.h"

namespace pliant::bench {
namespace {

using namespace simulator;

// The seeds are 1, 2, ...
constexpr int kSeeds = 3;

struct JobClass {
  std::string name;
  std::vector<std::string> applications;
  std::vector<double> jobs_per_hour;
};

const std::array<JobClass, 3> kClasses = {{
    {"bert", {"bert"}, {10, 20, 30, 40, 50, 60}},       // limited by communication
    {"deepspeech2", {"deepspeech2"}, {5, 10, 20, 40}},  // limited by computation
    {"mix", {"cifar10", "deepspeech2", "bert", "yolov3"}, {10, 20, 40, 60}},
}};

struct Baseline {
  std::string name;
  BatchChoice batch;
};

const std::array<Baseline, 3> kBaselines = {
    {{"max", BatchChoice::kMax}, {"random", BatchChoice::kRandom}, {"min", BatchChoice::kMin}}};

// The corner that the paper is known for.
constexpr std::string_view kAimCell = "bert 50/h";
constexpr double kAimJobs = 2;
constexpr double kAimTime = 8;

struct Settings {
  std::int64_t decide_every = 60'000;  // ms
  std::int64_t restart = 30'000;       // ms
  double seconds_alone = 2'400;
  SampleRules rules;
};

// Figures of a run with one seed.
struct Figures {
  double jobs = 0;         // completed before arrivals stop
  double unfinished = 0;   // submitted and not completed then
  double minutes = 0;      // mean completion time of `jobs`
  double all_minutes = 0;  // of all jobs; the run ends with the last one
};

Figures FiguresOf(const RunRecord& run, std::int64_t until) {
  Figures figures;
  for (const JobRecord& job : run.jobs) {
    const double minutes = static_cast<double>(*job.completed - job.submitted) / 60'000;
    figures.all_minutes += minutes / static_cast<double>(run.jobs.size());
    if (*job.completed > until) {
      ++figures.unfinished;
      continue;
    }
    ++figures.jobs;
    figures.minutes += minutes;
  }
  figures.minutes /= std::max(figures.jobs, 1.0);
  return figures;
}

using BySeed = std::array<Figures, kSeeds>;

double Mean(const BySeed& figures, double Figures::* what) {
  double sum = 0;
  for (const Figures& each : figures) sum += each.*what;
  return sum / kSeeds;
}

// A ratio of two policies: of their means, and the least and the greatest of a seed.
struct Ratio {
  double of_means = 0;
  double min = 0;
  double max = 0;
};

Ratio RatioOf(const BySeed& over, const BySeed& under, double Figures::* what) {
  std::array<double, kSeeds> ratios{};
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    ratios[seed] = over[seed].*what / (under[seed].*what);
  }
  return {.of_means = Mean(over, what) / Mean(under, what),
          .min = std::ranges::min(ratios),
          .max = std::ranges::max(ratios)};
}

std::string Text(const Ratio& ratio) {
  return Format("{:.2f} [{:.2f}, {:.2f}]", ratio.of_means, ratio.min, ratio.max);
}

// One class at one rate: the runs of all policies with the same jobs.
struct Cell {
  std::string name;  // "bert 50/h"
  BySeed elastic;
  std::array<BySeed, kBaselines.size()> fixed;
  BySeed pliant;  // Pliant's planner and resizing
  // The same two if speeds depend on the nodes that a job gets.
  BySeed elastic_on_nodes;
  BySeed pliant_on_nodes;
};

Cell Measure(const Profiles& profiles, const JobClass& job_class, double jobs_per_hour,
             const Settings& settings) {
  Cell cell{.name = Format("{} {:g}/h", job_class.name, jobs_per_hour)};
  Arrivals arrivals{.jobs_per_hour = jobs_per_hour, .mean_seconds_alone = settings.seconds_alone};
  for (const std::string& name : job_class.applications) {
    arrivals.applications.push_back(profiles.Find(name).value());
  }
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<SamplesJob> jobs = DrawJobs(profiles, arrivals, seed + 1);
    const auto jsa = [&](BatchChoice batch, const SampleRules& rules) {
      const JsaOptions options{.rules = rules,
                               .batch = batch,
                               .decide_every = settings.decide_every,
                               .restart = settings.restart};
      return FiguresOf(RunJsa(profiles, jobs, options), arrivals.until);
    };
    const auto pliant = [&](const SampleRules& rules) {
      const RunInput input = LiveInput(profiles, jobs, JsaOptions{}.nodes, rules);
      return FiguresOf(RunEvents(input, RunOptions{}), arrivals.until);
    };
    const SampleRules& rules = settings.rules;
    SampleRules on_nodes = rules;
    on_nodes.depends_on_nodes = true;
    for (std::size_t index = 0; index < kBaselines.size(); ++index) {
      cell.fixed[index][seed] = jsa(kBaselines[index].batch, rules);
    }
    cell.elastic[seed] = jsa(BatchChoice::kElastic, rules);
    cell.elastic_on_nodes[seed] = jsa(BatchChoice::kElastic, on_nodes);
    cell.pliant[seed] = pliant(rules);
    cell.pliant_on_nodes[seed] = pliant(on_nodes);
  }
  return cell;
}

// Ours and a rival in one cell.
struct Comparison {
  std::string name;  // "elastic / max batch"
  const BySeed& ours;
  const BySeed& theirs;
};

std::vector<Comparison> ComparisonsOf(const Cell& cell) {
  std::vector<Comparison> comparisons;
  for (std::size_t index = 0; index < kBaselines.size(); ++index) {
    comparisons.push_back({.name = Format("elastic / {} batch", kBaselines[index].name),
                           .ours = cell.elastic,
                           .theirs = cell.fixed[index]});
  }
  comparisons.push_back({.name = "Pliant / elastic", .ours = cell.pliant, .theirs = cell.elastic});
  comparisons.push_back({.name = "Pliant / elastic, on nodes",
                         .ours = cell.pliant_on_nodes,
                         .theirs = cell.elastic_on_nodes});
  return comparisons;
}

void PrintLine(const std::string& cell, const Comparison& each) {
  std::printf("%-16s %-27s %4.0f %4.0f %-18s %6.1f %6.1f %-18s %-21s %4.0f %4.0f\n", cell.c_str(),
              each.name.c_str(), Mean(each.ours, &Figures::jobs), Mean(each.theirs, &Figures::jobs),
              Text(RatioOf(each.ours, each.theirs, &Figures::jobs)).c_str(),
              Mean(each.ours, &Figures::minutes), Mean(each.theirs, &Figures::minutes),
              Text(RatioOf(each.theirs, each.ours, &Figures::minutes)).c_str(),
              Text(RatioOf(each.theirs, each.ours, &Figures::all_minutes)).c_str(),
              Mean(each.ours, &Figures::unfinished), Mean(each.theirs, &Figures::unfinished));
}

void AddRows(const std::string& cell, const Comparison& each, std::vector<Row>& rows) {
  const auto add = [&](const std::string& what, double Figures::* figure, const std::string& unit) {
    rows.push_back({.name = Format("{}, {}, {}", cell, each.name, what),
                    .value = Mean(each.ours, figure),
                    .unit = unit,
                    .rival = Mean(each.theirs, figure),
                    .aim = {},
                    .more_is_better = figure == &Figures::jobs});
  };
  add("jobs completed in 8 h", &Figures::jobs, "jobs");
  add("mean completion time of these", &Figures::minutes, "min");
  add("mean completion time of all", &Figures::all_minutes, "min");
}

// One line a cell, for docs/performance.md.
void PrintSummary(const std::vector<Cell>& cells) {
  std::printf("\n| class, arrivals | elastic |");
  for (const Comparison& each : ComparisonsOf(cells.front()))
    std::printf(" %s |", each.name.c_str());
  std::printf("\n|---|---|---|---|---|---|---|\n");
  for (const Cell& cell : cells) {
    std::printf("| %s | %.0f, %.1f min |", cell.name.c_str(), Mean(cell.elastic, &Figures::jobs),
                Mean(cell.elastic, &Figures::minutes));
    for (const Comparison& each : ComparisonsOf(cell)) {
      std::printf(" %s ×, ÷ %s |", Text(RatioOf(each.ours, each.theirs, &Figures::jobs)).c_str(),
                  Text(RatioOf(each.theirs, each.ours, &Figures::minutes)).c_str());
    }
    std::printf("\n");
  }
}

void ReportAims(const Cell& cell, std::vector<Row>& rows) {
  const BySeed& max_batch = cell.fixed.front();
  std::printf("\n");
  Report({.name = cell.name + ", elastic / max batch, jobs completed in 8 h",
          .value = RatioOf(cell.elastic, max_batch, &Figures::jobs).of_means,
          .unit = "x",
          .rival = {},
          .aim = kAimJobs,
          .more_is_better = true},
         rows);
  Report({.name = cell.name + ", max batch / elastic, completion time",
          .value = RatioOf(max_batch, cell.elastic, &Figures::minutes).of_means,
          .unit = "x",
          .rival = {},
          .aim = kAimTime,
          .more_is_better = true},
         rows);
}

void PrintTable(const Profiles& profiles, const Settings& settings, std::vector<Row>& rows) {
  const bool accumulates = settings.rules.accumulates;
  std::printf("\n%s\nRatios above 1: the first is better. Means of %d seeds [min, max].\n\n",
              accumulates ? "With accumulation: a batch may exceed the memory of the job's GPUs."
                          : "As in the paper: a batch must fit the memory of the job's GPUs.",
              kSeeds);
  std::printf("%-16s %-27s %9s %-18s %13s %-18s %-21s %9s\n", "class, arrivals", "comparison",
              "jobs", "ratio", "minutes", "ratio", "ratio, all jobs", "not done");
  std::vector<Cell> cells;
  for (const JobClass& job_class : kClasses) {
    for (const double rate : job_class.jobs_per_hour) {
      cells.push_back(Measure(profiles, job_class, rate, settings));
      for (const Comparison& each : ComparisonsOf(cells.back())) {
        PrintLine(cells.back().name, each);
        AddRows((accumulates ? "accumulating, " : "") + cells.back().name, each, rows);
      }
    }
  }
  PrintSummary(cells);
  if (accumulates) return;
  const auto aim = std::ranges::find(cells, kAimCell, &Cell::name);
  if (aim != cells.end()) ReportAims(*aim, rows);
}

}  // namespace
}  // namespace pliant::bench

int main(int argc, char** argv) {
  using namespace pliant;
  CLI::App app("The table of arXiv:2006.13878: elastic batches against fixed ones.");
  bench::Settings settings;
  std::string json;
  app.add_option("--decide-every", settings.decide_every, "ms between decisions; 0: at events");
  app.add_option("--restart", settings.restart, "ms that a resized job does not train");
  app.add_option("--seconds-alone", settings.seconds_alone, "mean length of a job with one GPU");
  app.add_option("--json", json, "file for the rows");
  CLI11_PARSE(app, argc, argv);

  const auto profiles = simulator::ReadProfiles(PLIANT_SOURCE_DIR "/tests/data/pollux");
  if (!profiles) {
    std::fprintf(stderr, "%s\n", profiles.error().message.c_str());
    return 1;
  }
  std::vector<bench::Row> rows;
  bench::PrintTable(*profiles, settings, rows);
  settings.rules.accumulates = true;
  bench::PrintTable(*profiles, settings, rows);
  if (!json.empty()) bench::Write(rows, json);
}
