#include "operator/replay/replay.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"
#include "operator/planner/plan.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/differences.h"
#include "operator/replay/new_job.h"
#include "operator/replay/read_input.h"
#include "operator/replay/report.h"
#include "operator/replay/text_table.h"

namespace pliant::replay {
namespace {

// The leader has the snapshot; its lease names its pod.
constexpr const char* kNeedsSnapshot =
    "--plan-dry-run needs the snapshot of a running operator: kubectl -n pliant-system "
    "port-forward pod/$(kubectl -n pliant-system get lease pliant-operator -o "
    "jsonpath='{.spec.holderIdentity}' | cut -d_ -f1) 6060 & curl -s --retry 5 "
    "--retry-connrefused localhost:6060/debug/snapshot | pliant-operator --replay - "
    "--plan-dry-run job.yaml";

int Refuse(const std::string& file, const Error& error, std::ostream& errors) {
  errors << Printable(Format("{}: {}", ShownInput(file), error.message)) << "\n";
  return kBadInput;
}

int ReplayPlan(const DebugSnapshot& debug, const ReplayOptions& options, std::ostream& out,
               std::ostream& errors) {
  const planner::Plan plan = planner::MakePlan(debug.snapshot, debug.policy);
  out << (options.json ? WritePlan(plan) : ReportPlan(plan));
  if (!debug.plan) {
    errors << "the file has no plan to compare with\n";
    return kSamePlan;
  }
  const std::vector<std::string> differences = Differences(*debug.plan, plan);
  for (const std::string& line : differences) errors << Printable(line) << "\n";
  return differences.empty() ? kSamePlan : kOtherPlan;
}

int AddJob(DebugSnapshot debug, planner::JobView job, const ReplayOptions& options,
           std::ostream& out, std::ostream& errors) {
  const planner::Plan without = planner::MakePlan(debug.snapshot, debug.policy);
  debug.snapshot.jobs.push_back(job);
  const planner::Plan with = planner::MakePlan(debug.snapshot, debug.policy);
  out << (options.json ? WritePlan(with) : ReportNewJob(job, without, with));
  errors << "not in the snapshot, so not considered: whether the queue admits the namespace, and "
            "the queue's default and maximum of priorities\n";
  return kSamePlan;
}

}  // namespace

int Replay(const ReplayOptions& options, std::istream& in, std::ostream& out,
           std::ostream& errors) {
  if (options.snapshot_file.empty()) {
    errors << kNeedsSnapshot << "\n";
    return kBadInput;
  }
  const auto text = ReadInput(options.snapshot_file, in);
  if (!text) return Refuse(options.snapshot_file, text.error(), errors);
  auto debug = ReadSnapshot(*text);
  if (!debug) return Refuse(options.snapshot_file, debug.error(), errors);
  if (options.job_file.empty()) return ReplayPlan(*debug, options, out, errors);

  const auto yaml = ReadInput(options.job_file, in);
  if (!yaml) return Refuse(options.job_file, yaml.error(), errors);
  auto job = NewJob(*yaml, options.jobs, debug->snapshot);
  if (!job) return Refuse(options.job_file, job.error(), errors);
  return AddJob(*std::move(debug), *std::move(job), options, out, errors);
}

}  // namespace pliant::replay
