#include "simulator/simulate.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "operator/replay/text_table.h"
#include "simulator/baseline_run.h"
#include "simulator/events/event_engine.h"
#include "simulator/isolated.h"
#include "simulator/model/read_profiles.h"
#include "simulator/plan_times.h"
#include "simulator/report/cdf_plot.h"
#include "simulator/report/html.h"
#include "simulator/report/json.h"
#include "simulator/report/report.h"
#include "simulator/report/text.h"
#include "simulator/scenario_input.h"
#include "simulator/workloads.h"

namespace pliant::simulator {
namespace {

BaselineOptions RoundsOf(const SimulateOptions& options) {
  BaselineOptions rounds;
  if (options.plan_every > 0) rounds.round_seconds = options.plan_every / 1000;
  if (const auto* const restart = std::get_if<Restarting>(&options.resizing)) {
    rounds.restart_seconds = restart->pause / 1000;
  }
  return rounds;
}

RunOptions EventsOf(const SimulateOptions& options) {
  RunOptions run{.resizing = options.resizing,
                 .speeds = options.speeds,
                 .plan_every = options.plan_every,
                 .failures = options.failures,
                 .seed = options.seed};
  run.policy.hold_percent = options.hold_percent;
  return run;
}

Result<RunRecord> RunUnder(const RunPolicy& policy, const SimulateOptions& options,
                           const Profiles& profiles, const Scenario& scenario, PlanTimes& times) {
  if (const auto* const baseline = std::get_if<Baseline>(&policy.what)) {
    return RunBaseline(profiles, scenario, *baseline, RoundsOf(options));
  }
  InputOptions rules{.favors_short_jobs = options.favors_short_jobs, .batch = options.batch};
  if (const auto* const of_queues = std::get_if<planner::QueuePolicy>(&policy.what)) {
    rules.policy = *of_queues;
  }
  ASSIGN_OR_RETURN(const RunInput input, InputOf(profiles, scenario, rules));
  RunOptions run = EventsOf(options);
  run.make_plan = [&times](const planner::ClusterSnapshot& snapshot, const planner::Policy& rule,
                           planner::FitMemory& memory) {
    return times.MakePlan(snapshot, rule, memory);
  };
  return RunEvents(input, run);
}

Result<Report> RunAll(const SimulateOptions& options, std::ostream* progress) {
  ASSIGN_OR_RETURN(const Profiles profiles, ReadProfiles(options.profiles));
  ASSIGN_OR_RETURN(const std::vector<NamedScenario> all, ReadScenarios(options, profiles));
  std::vector<MeasuredRun> runs;
  for (const RunPolicy& policy : options.policies) {
    for (const NamedScenario& each : all) {
      if (progress != nullptr) {
        *progress << replay::Printable(Format("run {} of {}: {}, {}", runs.size() + 1,
                                              options.policies.size() * all.size(), each.name,
                                              policy.name))
                  << std::endl;
      }
      PlanTimes times;
      auto record = RunUnder(policy, options, profiles, each.scenario, times);
      if (!record) {
        return Invalid(Format("{}: policy {}: {}", each.file, policy.name, record.error().message));
      }
      if (const std::string sentence = times.Sentence(); progress != nullptr && !sentence.empty()) {
        *progress << "  " << sentence << std::endl;
      }
      record->policy = policy.name;
      record->workload = each.name;
      runs.push_back(Measure(*std::move(record), IsolatedSecondsOf(profiles, each.scenario)));
    }
  }
  return Compare(options.summary, std::move(runs));
}

// Runs may take minutes: a wrong name is found before.
Status CheckFile(const char* option, const std::string& file) {
  if (file.empty()) return {};
  const std::filesystem::path path(file);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  if (std::filesystem::is_directory(path, error) || !path.has_filename()) {
    return Invalid(Format("{} {} is a folder; name a file", option, file));
  }
  if (!std::filesystem::is_directory(folder, error)) {
    return Invalid(
        Format("{} {}: there is no folder {}; create it", option, file, folder.string()));
  }
  return {};
}

Status CheckFiles(const SimulateOptions& options) {
  std::vector<std::string> inputs = options.workloads;
  inputs.push_back(options.scenario);
  const std::pair<const char*, const std::string&> outputs[] = {
      {"--out", options.html_file}, {"--svg", options.svg_file}, {"--json", options.json_file}};
  for (const auto& [option, file] : outputs) {
    RETURN_IF_ERROR(CheckFile(option, file));
    for (const std::string& input : inputs) {
      std::error_code error;  // they differ if one does not exist
      if (std::filesystem::equivalent(input, file, error)) {
        return Invalid(Format("{} {} is an input, too; name another file", option, file));
      }
    }
  }
  return {};
}

Status WriteFiles(const SimulateOptions& options, const Report& report) {
  const std::tuple<const std::string&, std::string (*)(const Report&)> writers[] = {
      {options.html_file, WriteHtml},
      {options.svg_file, CdfPicture},
      {options.json_file, WriteJson}};
  for (const auto& [file, write] : writers) {
    if (file.empty()) continue;
    RETURN_IF_ERROR(WriteFileAtomically(file, write(report)));
  }
  return {};
}

}  // namespace

int Simulate(const SimulateOptions& options, std::ostream& out, std::ostream& errors,
             std::ostream* progress) {
  const Status files = CheckFiles(options);
  const auto report = files ? RunAll(options, progress) : std::unexpected(files.error());
  if (!report) {
    errors << replay::Printable(report.error().message) << "\n";
    return kBadInput;
  }
  const Status written = WriteFiles(options, *report);
  if (!written) errors << replay::Printable(written.error().message) << "\n";
  out << WriteText(*report) << std::flush;
  if (!out) errors << "the report cannot be written to standard output\n";
  return written && out ? 0 : kNotWritten;
}

}  // namespace pliant::simulator
