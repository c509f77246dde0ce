#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "simulator/events/profiled_work.h"
#include "simulator/events/run_options.h"
#include "simulator/run_policy.h"

namespace pliant::simulator {

// Runs of workloads, each under each policy.
struct SimulateOptions {
  std::vector<std::string> workloads;  // CSV files; empty: there is a scenario
  std::string scenario;                // a YAML file
  std::string profiles;                // a folder
  std::string nodes = "16x4";          // of `workloads`
  std::vector<RunPolicy> policies;     // never empty
  std::variant<LiveResizing, Restarting> resizing;
  std::int64_t plan_every = 0;  // milliseconds, whole seconds; 0: at events
  BatchRule batch = BatchRule::kFixed;
  KnownSpeeds speeds = KnownSpeeds::kTrue;
  std::optional<bool> favors_short_jobs;  // absent: as the queues say
  int hold_percent = planner::Policy{}.hold_percent;
  std::optional<Failures> failures;
  std::uint64_t seed = 1;
  std::string html_file;  // "": none
  std::string svg_file;
  std::string json_file;
  std::string summary;  // the settings, as the title of the report
};

// A question: the effect of edits of a live cluster.
struct WhatIfOptions {
  std::string snapshot_file;  // "-": standard input
  std::vector<std::string> edits;
  bool all_jobs = false;
  bool forward = false;  // simulate the cluster to the end of its jobs, too
};

using Options = std::variant<SimulateOptions, WhatIfOptions>;

inline constexpr int kBadInput = 2;

// The exit code of the program if there is nothing to do: 0 after --help, which goes to `out`, and
// kBadInput if an option is wrong, which `errors` says.
std::expected<Options, int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                         std::ostream& errors);

}  // namespace pliant::simulator
