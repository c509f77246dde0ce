#include "simulator/workloads.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "base/format.h"
#include "simulator/baseline_run.h"
#include "simulator/scenario_input.h"

namespace pliant::simulator {
namespace {

// "workload-1", or "workloads-1.0/workload-1" if another file has the same name.
std::vector<std::string> NamesOf(const std::vector<std::string>& files) {
  std::map<std::string, int> stems;
  for (const std::string& file : files) ++stems[std::filesystem::path(file).stem().string()];
  std::vector<std::string> names;
  for (const std::string& file : files) {
    const std::filesystem::path path(file);
    const std::string stem = path.stem().string();
    const std::string folder = path.parent_path().filename().string();
    const bool is_unique = stems.at(stem) == 1 || folder.empty();
    names.push_back(is_unique ? stem : folder + "/" + stem);
  }
  return names;
}

Status CheckPolicies(const SimulateOptions& options, const Profiles& profiles,
                     const NamedScenario& named) {
  for (const RunPolicy& policy : options.policies) {
    if (!std::holds_alternative<Baseline>(policy.what)) continue;
    const Status checked = CheckForBaseline(named.scenario);
    if (checked) continue;
    return Invalid(Format("{}: policy {}: {}", named.file, policy.name, checked.error().message));
  }
  const auto input = InputOf(profiles, named.scenario, {.batch = options.batch});
  if (!input) return Invalid(Format("{}: {}", named.file, input.error().message));
  return {};
}

}  // namespace

Result<std::vector<NamedScenario>> ReadScenarios(const SimulateOptions& options,
                                                 const Profiles& profiles) {
  const bool is_yaml = !options.scenario.empty();
  const std::vector<std::string> files =
      is_yaml ? std::vector<std::string>{options.scenario} : options.workloads;
  const std::vector<std::string> names = NamesOf(files);
  std::set<std::string> seen;
  std::vector<NamedScenario> all;
  for (std::size_t at = 0; at < files.size(); ++at) {
    if (!seen.insert(names[at]).second) {
      return Invalid(
          Format("{}: another workload is named {}, too; name each file once, and "
                 "rename files that have the same name",
                 files[at], names[at]));
    }
    NamedScenario named{.name = names[at], .file = files[at]};
    ASSIGN_OR_RETURN(named.scenario,
                     is_yaml ? ReadScenario(files[at], profiles)
                             : ReadWorkloadScenario(files[at], options.nodes, profiles));
    RETURN_IF_ERROR(CheckPolicies(options, profiles, named));
    all.push_back(std::move(named));
  }
  return all;
}

}  // namespace pliant::simulator
