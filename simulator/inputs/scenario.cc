#include "simulator/inputs/scenario.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/format.h"
#include "simulator/inputs/fields.h"
#include "simulator/inputs/node_groups.h"
#include "simulator/inputs/scenario_events.h"
#include "simulator/inputs/scenario_jobs.h"
#include "simulator/inputs/scenario_queues.h"
#include "simulator/inputs/yaml_value.h"
#include "simulator/model/csv.h"
#include "simulator/model/data_file.h"

namespace pliant::simulator {
namespace {

constexpr std::array<std::string_view, 4> kScenarioKeys = {"nodes", "queues", "jobs", "events"};
constexpr std::array<std::string_view, 3> kGroupKeys = {"count", "gpus", "labels"};
// They bound what many nodes hold, each of which has them.
constexpr std::size_t kMaxLabels = 16;
constexpr std::size_t kMaxLabelBytes = 317;  // of a key: a domain, a slash and a name
constexpr std::string_view kNodesExample = "{count: 16, gpus: 4}";
constexpr std::string_view kJobsExample = "{name: a, profile: cifar10}";

Result<std::map<std::string, std::string>> ReadLabels(std::string_view file,
                                                      const YamlValue& value) {
  if (value.kind != YamlKind::kMapping || value.items.size() > kMaxLabels) {
    return WrongAt(
        file, value.line,
        Format("'labels' of a group of nodes {}; write at most {}, for example "
               "{{zone: a}}",
               value.kind == YamlKind::kMapping ? "are too many" : "are no mapping", kMaxLabels));
  }
  std::map<std::string, std::string> labels;
  for (const YamlValue& each : value.items) {
    if (each.key.empty() || each.key.size() > kMaxLabelBytes ||
        (each.kind != YamlKind::kText && each.kind != YamlKind::kNothing) ||
        each.text.size() > kMaxLabelBytes) {
      return WrongAt(file, each.key_line,
                     Format("the label '{}' is {}; write texts of at most {} bytes",
                            Shown(std::string_view(each.key)), Shown(each), kMaxLabelBytes));
    }
    labels.emplace(each.key, each.text);
  }
  return labels;
}

Result<NodeGroup> ReadGroup(std::string_view file, const YamlValue& value) {
  ASSIGN_OR_RETURN(const Fields fields, Fields::Open(file, value, "a group of nodes", kGroupKeys));
  NodeGroup group;
  ASSIGN_OR_RETURN(group.count, fields.Whole("count", 1, {1, kMaxNodes}));
  RETURN_IF_ERROR(fields.Required("gpus", "4"));
  ASSIGN_OR_RETURN(group.gpus, fields.Whole("gpus", 1, {1, kMaxGpusPerNode}));
  if (const YamlValue* const labels = fields.Find("labels")) {
    ASSIGN_OR_RETURN(group.labels, ReadLabels(file, *labels));
  }
  return group;
}

Result<std::vector<planner::NodeView>> ReadNodes(std::string_view file, const YamlValue& value) {
  ASSIGN_OR_RETURN(const auto items, ItemsOf(file, value, "nodes", kNodesExample, kMaxNodes));
  std::vector<NodeGroup> groups;
  NodeTotals totals;
  for (const YamlValue& item : items) {
    ASSIGN_OR_RETURN(NodeGroup group, ReadGroup(file, item));
    if (const Status within = totals.Add(group); !within) {
      return WrongAt(file, item.line, "this group " + within.error().message);
    }
    groups.push_back(std::move(group));
  }
  return MakeNodes(groups);
}

}  // namespace

std::int64_t TimeOf(const ScenarioEvent& event) {
  return std::visit([](const auto& each) { return each.at; }, event);
}

Result<Scenario> ParseScenario(const std::string& text, const std::string& file,
                               const Profiles& profiles) {
  ASSIGN_OR_RETURN(const YamlValue root, ParseYaml(text, file));
  ASSIGN_OR_RETURN(const Fields fields, Fields::Open(file, root, "the scenario", kScenarioKeys));
  Scenario scenario;
  ASSIGN_OR_RETURN(const YamlValue* const nodes,
                   fields.Required("nodes", Format("[{}]", kNodesExample)));
  ASSIGN_OR_RETURN(scenario.nodes, ReadNodes(file, *nodes));
  if (const YamlValue* const queues = fields.Find("queues")) {
    ASSIGN_OR_RETURN(scenario.queues, ReadQueues(file, *queues));
  }
  ASSIGN_OR_RETURN(const YamlValue* const jobs,
                   fields.Required("jobs", Format("[{}]", kJobsExample)));
  ASSIGN_OR_RETURN(const auto job_items,
                   ItemsOf(file, *jobs, "jobs", kJobsExample, kMaxScenarioItems));
  ASSIGN_OR_RETURN(scenario.jobs,
                   ReadJobs(file, job_items, profiles, scenario.nodes, scenario.queues));
  if (const YamlValue* const events = fields.Find("events")) {
    ASSIGN_OR_RETURN(const auto items,
                     ItemsOf(file, *events, "events", "{at: 1h, cordon: n00}", kMaxScenarioItems));
    ASSIGN_OR_RETURN(scenario.events, ReadEvents(file, items, scenario.nodes, scenario.jobs));
  }
  // Submission is in whole seconds, as in CSV.
  std::ranges::stable_sort(scenario.jobs, {},
                           [](const ScenarioJob& job) { return job.spec.submitted_seconds; });
  std::ranges::stable_sort(scenario.events, {}, TimeOf);
  return scenario;
}

Result<Scenario> ReadScenario(const std::filesystem::path& path, const Profiles& profiles) {
  ASSIGN_OR_RETURN(const std::string text, ReadDataFile(path, kMaxScenarioBytes, "YAML"));
  return ParseScenario(text, path.string(), profiles);
}

Result<Scenario> ReadWorkloadScenario(const std::filesystem::path& path, std::string_view nodes,
                                      const Profiles& profiles) {
  Scenario scenario;
  ASSIGN_OR_RETURN(scenario.nodes, ParseNodes(nodes));
  ASSIGN_OR_RETURN(std::vector<JobSpec> specs, ReadWorkload(path, profiles));
  if (specs.size() > kMaxScenarioItems) {
    return Invalid(Format("{} has {} jobs; split it into files of at most {}", path.string(),
                          specs.size(), kMaxScenarioItems));
  }
  for (JobSpec& spec : specs) {
    ScenarioJob job{.spec = std::move(spec)};
    job.max_learners = MaxLearnersOf(profiles[job.spec.application], job.spec.batch, 1);
    scenario.jobs.push_back(std::move(job));
  }
  return scenario;
}

}  // namespace pliant::simulator
