#include "simulator/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "operator/replay/text_table.h"
#include "simulator/option_values.h"

namespace pliant::simulator {
namespace {

constexpr const char* kAbout =
    "Simulates a cluster whose GPUs are shared by the planner of pliant-operator: a workload or a "
    "scenario under several policies, or what changes of a live cluster would do.";

constexpr const char* kExamples = R"(
Examples:
  Two policies and a baseline on a published workload:
    pliant-simulate --workload tests/data/pollux/workloads-1.0/workload-1.csv \
      --profiles tests/data/pollux --policy FairShare,Throughput,tiresias --out report.html
  A cluster, queues, jobs and events of your own:
    pliant-simulate --scenario cluster.yaml --profiles tests/data/pollux
  What a larger weight and two more nodes would change in a live cluster:
    curl -s localhost:6060/debug/snapshot |
      pliant-simulate --snapshot - --set queue.research.weight=300 --set nodes+=2x8

docs/simulator.md explains assumptions, files and reports.)";

// Options as they are written.
struct Texts {
  std::vector<std::string> policies;
  std::string resize = "live";
  std::string every = "0";
  std::string batch = "fixed";
  std::string speeds = "known";
  std::string bias;
  std::string failures;
};

const std::map<std::string, BatchRule> kBatches = {{"fixed", BatchRule::kFixed},
                                                   {"state", BatchRule::kFromState},
                                                   {"recorded", BatchRule::kRecorded}};
const std::map<std::string, KnownSpeeds> kSpeeds = {{"known", KnownSpeeds::kTrue},
                                                    {"learned", KnownSpeeds::kLearned},
                                                    {"unknown", KnownSpeeds::kNone}};

template <typename Value>
std::vector<std::string> NamesOf(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

// The end of a sentence about the option.
template <typename Value>
Value Parsed(const char* option, Result<Value> value) {
  if (!value) throw CLI::ValidationError(option, value.error().message);
  return *std::move(value);
}

constexpr const char* kSimulation = "Simulate workloads or a scenario";
constexpr const char* kLiveCluster = "Ask what changes of a live cluster would do";

// Returns its options.
std::vector<CLI::Option*> AddSimulation(CLI::App& app, SimulateOptions& options, Texts& texts) {
  std::vector<CLI::Option*> all;
  const auto add = [&](const std::string& name, auto& value, const char* type,
                       const std::string& help) {
    all.push_back(app.add_option(name, value, help)->type_name(type)->group(kSimulation));
    return all.back();
  };
  add("--workload", options.workloads, "FILE,...",
      "Files of jobs, as CSV with the columns name, time, application, num_replicas and batch_size")
      ->delimiter(',');
  add("--scenario", options.scenario, "FILE",
      "Instead of --workload: file of a cluster, its queues, jobs and events, as YAML");
  add("--profiles", options.profiles, "DIR", "Folder of measured applications; required");
  add("--nodes", options.nodes, "NODES",
      "Nodes of --workload: their number and the GPUs of each, such as 16x4,2x8")
      ->capture_default_str();
  add("--policy", texts.policies, "POLICY,...",
      "One run of each workload for each of: FairShare, Throughput, Priority, Fifo, as-written (as "
      "the queues of --scenario say), and the baselines tiresias, optimus and strict. By default "
      "FairShare,Throughput; as-written with --scenario")
      ->delimiter(',');
  add("--resize", texts.resize, "HOW",
      "live: learners join and leave a training; restart:30: a job with other GPUs restarts, which "
      "takes 30 s. Baselines always restart, in 30 s by default")
      ->capture_default_str();
  add("--every", texts.every, "SECONDS",
      "Plan only every so many seconds; 0: whenever something happens. Baselines plan every 60 s "
      "by default")
      ->capture_default_str();
  add("--batch", texts.batch, "RULE",
      "Samples of a step: fixed, as submitted; state: up to half of the noise scale of the "
      "gradients; recorded: the one that trains fastest on the GPUs of the job")
      ->capture_default_str()
      ->check(CLI::IsMember(NamesOf(kBatches)));
  add("--speeds", texts.speeds, "WHAT",
      "The speeds of jobs that the planner knows: known, all of them; learned, by what it measured "
      "in the run; unknown, none")
      ->capture_default_str()
      ->check(CLI::IsMember(NamesOf(kSpeeds)));
  add("--bias", texts.bias, "BIAS",
      "Of policy Throughput: ShortJobs favors jobs with little left; by default as the queues say")
      ->check(CLI::IsMember({"None", "ShortJobs"}));
  add("--hold", options.hold_percent, "PERCENT",
      "Of policy Throughput: by how much a job counts GPUs that it has more")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  add("--failures", texts.failures, "TIMES",
      "Nodes fail at random: mtbf=6h,repair=10m is the mean time between failures of a node, and "
      "how long it is away");
  add("--seed", options.seed, "NUMBER", "Of --failures. Equal options and files give equal bytes")
      ->capture_default_str();
  add("--out", options.html_file, "FILE", "Write a report as HTML to this file");
  add("--svg", options.svg_file, "FILE", "Write the completion times as a picture to this file");
  add("--json", options.json_file, "FILE", "Write all figures and records as JSON to this file");
  return all;
}

std::vector<CLI::Option*> AddWhatIf(CLI::App& app, WhatIfOptions& options) {
  std::vector<CLI::Option*> all;
  all.push_back(app.add_option("--snapshot", options.snapshot_file,
                               "Plan this file (of /debug/snapshot; -: standard input) before and "
                               "after the changes of --set")
                    ->type_name("FILE"));
  all.push_back(app.add_option("--set", options.edits,
                               "A change, such as queue.research.weight=300, "
                               "job.team-a/resnet.priority=100, nodes+=2x8 or nodes-=gpu-1; may be "
                               "repeated")
                    ->type_name("EDIT")
                    ->expected(1)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
  all.push_back(app.add_flag("--all", options.all_jobs, "List jobs that do not change, too"));
  all.push_back(app.add_flag("--forward", options.forward,
                             "Also simulate the cluster to the end of its jobs, without and with "
                             "the changes"));
  for (CLI::Option* const option : all) option->group(kLiveCluster);
  return all;
}

// The first option of the list that was given; null: none.
const CLI::Option* Given(const std::vector<CLI::Option*>& options) {
  const auto at =
      std::ranges::find_if(options, [](const CLI::Option* option) { return option->count() > 0; });
  return at == options.end() ? nullptr : *at;
}

void CheckTogether(const CLI::Option* one, const CLI::Option* other) {
  if (one == nullptr || other == nullptr) return;
  throw CLI::ValidationError(one->get_name(),
                             Format("does not go with {}; remove one of them", other->get_name()));
}

bool IsBaseline(const RunPolicy& policy) { return std::holds_alternative<Baseline>(policy.what); }

void CheckBaselines(const SimulateOptions& options) {
  const auto baseline = std::ranges::find_if(options.policies, IsBaseline);
  if (baseline == options.policies.end()) return;
  const auto refuse = [&](const char* option, const char* what) {
    throw CLI::ValidationError(
        option, Format("{}, which the baseline {} does not know; remove one of them", what,
                       baseline->name));
  };
  if (options.batch != BatchRule::kFixed) refuse("--batch", "changes the batch of jobs");
  if (options.failures) refuse("--failures", "makes nodes fail");
}

std::vector<RunPolicy> PoliciesOf(const std::vector<std::string>& texts, bool has_scenario) {
  std::vector<std::string> names = texts;
  if (names.empty() && has_scenario) names = {"as-written"};
  if (names.empty()) names = {"FairShare", "Throughput"};
  std::vector<RunPolicy> policies;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    policies.push_back(Parsed("--policy", ParsePolicy(name)));
    if (!seen.insert(name).second) {
      throw CLI::ValidationError("--policy", Format("names {} twice; remove one", name));
    }
    if (!has_scenario && std::holds_alternative<AsWritten>(policies.back().what)) {
      throw CLI::ValidationError("--policy",
                                 "has as-written, but a CSV workload has no queues; name a policy");
    }
  }
  return policies;
}

// Pairs of an option and its file.
void CheckFiles(const std::vector<std::pair<std::string, std::string>>& files) {
  std::map<std::string, std::string> seen;  // options by file
  for (const auto& [option, file] : files) {
    const auto [at, is_new] = seen.emplace(file, option);
    if (is_new || file.empty()) continue;
    throw CLI::ValidationError(option, Format("has the file of {}; name another one", at->second));
  }
}

void Finish(SimulateOptions& options, const Texts& texts) {
  if (!options.workloads.empty() && !options.scenario.empty()) {
    throw CLI::ValidationError("--workload", "does not go with --scenario; remove one of them");
  }
  if (!options.scenario.empty() && options.nodes != SimulateOptions{}.nodes) {
    throw CLI::ValidationError("--nodes", "is for --workload; write the nodes into the scenario");
  }
  if (options.workloads.empty() && options.scenario.empty()) {
    throw CLI::ValidationError(
        "--workload", "is missing; name --workload FILE, --scenario FILE or --snapshot FILE");
  }
  if (options.profiles.empty()) {
    throw CLI::ValidationError("--profiles",
                               "is missing; name a folder of profiles, such as tests/data/pollux");
  }
  options.policies = PoliciesOf(texts.policies, !options.scenario.empty());
  options.resizing = Parsed("--resize", ParseResize(texts.resize));
  options.plan_every = Parsed("--every", ParseEvery(texts.every));
  options.batch = kBatches.at(texts.batch);
  options.speeds = kSpeeds.at(texts.speeds);
  if (!texts.bias.empty()) options.favors_short_jobs = texts.bias == "ShortJobs";
  if (!texts.failures.empty()) {
    options.failures = Parsed("--failures", ParseFailures(texts.failures));
  }
  CheckBaselines(options);
  CheckFiles(
      {{"--out", options.html_file}, {"--svg", options.svg_file}, {"--json", options.json_file}});
  options.summary = Format("{}resize {}, every {}, batch {}, speeds {}, hold {} %",
                           options.scenario.empty() ? options.nodes + ", " : "", texts.resize,
                           texts.every, texts.batch, texts.speeds, options.hold_percent);
  if (!texts.bias.empty()) options.summary += ", bias " + texts.bias;
  if (options.failures) options.summary += Format(", {} seed {}", texts.failures, options.seed);
}

}  // namespace

std::expected<Options, int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                         std::ostream& errors) {
  SimulateOptions simulate;
  WhatIfOptions what_if;
  Texts texts;
  CLI::App app{kAbout, "pliant-simulate"};
  app.footer(kExamples);
  const auto of_simulation = AddSimulation(app, simulate, texts);
  const auto of_what_if = AddWhatIf(app, what_if);
  try {
    app.parse(argc, argv);
    CheckTogether(Given(of_what_if), Given(of_simulation));
    if (const CLI::Option* const given = Given(of_what_if)) {
      if (!what_if.snapshot_file.empty()) return what_if;
      throw CLI::ValidationError(given->get_name(), "needs a snapshot; name --snapshot FILE");
    }
    Finish(simulate, texts);
  } catch (const CLI::CallForHelp&) {
    out << app.help() << "\n";
    return std::unexpected(0);
  } catch (const CLI::ParseError& error) {
    errors << replay::Printable(error.what()) << "\npliant-simulate --help lists the options\n";
    return std::unexpected(kBadInput);
  }
  return simulate;
}

}  // namespace pliant::simulator
