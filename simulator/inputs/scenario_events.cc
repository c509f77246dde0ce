#include "simulator/inputs/scenario_events.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/format.h"
#include "operator/replay/describe.h"
#include "simulator/inputs/fields.h"
#include "simulator/inputs/values.h"

namespace pliant::simulator {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"cordon", "uncordon", "fail", "priority",
                                                    "finish"};
constexpr std::array<std::string_view, 7> kEventKeys = {"at",  "cordon",   "uncordon", "fail",
                                                        "for", "priority", "finish"};
constexpr std::array<std::string_view, 2> kPriorityKeys = {"job", "to"};

class EventReader {
 public:
  EventReader(std::string_view file, const std::vector<planner::NodeView>& nodes,
              const std::vector<ScenarioJob>& jobs)
      : file_(file), nodes_(nodes) {
    for (const planner::NodeView& node : nodes) node_names_.insert(node.name);
    for (const ScenarioJob& job : jobs) {
      submitted_.emplace(job.spec.name, job.spec.submitted_seconds * 1000);
    }
  }

  Result<ScenarioEvent> Read(const YamlValue& value) const {
    ASSIGN_OR_RETURN(const Fields fields, Fields::Open(file_, value, "an event", kEventKeys));
    ASSIGN_OR_RETURN(const std::int64_t at, fields.Millis("at", "1h"));
    ASSIGN_OR_RETURN(const std::string_view kind, KindOf(fields));
    if (kind != "fail" && fields.Find("for") != nullptr) {
      return fields.Wrong("for", "is only for 'fail'; remove it");
    }
    if (kind == "priority") return ReadPriority(fields, at);
    if (kind == "finish") {
      ASSIGN_OR_RETURN(std::string job, JobOf(fields, "finish", at));
      return FinishJob{.at = at, .job = std::move(job)};
    }
    ASSIGN_OR_RETURN(std::string node, NodeOf(fields, kind));
    if (kind == "cordon") return CordonNode{.at = at, .node = std::move(node)};
    if (kind == "uncordon") return UncordonNode{.at = at, .node = std::move(node)};
    ASSIGN_OR_RETURN(const std::int64_t lasts, fields.Millis("for", "10m", 1));
    return FailNode{.at = at, .node = std::move(node), .lasts = lasts};
  }

 private:
  static Result<std::string_view> KindOf(const Fields& fields) {
    std::string known;
    std::string_view kind;
    int found = 0;
    for (const std::string_view each : kKinds) {
      known.append(known.empty() ? "" : ", ").append(each);
      if (fields.Find(each) == nullptr) continue;
      kind = each;
      ++found;
    }
    if (found == 1) return kind;
    return fields.Wrong(
        Format("an event has {} of {}; write exactly one", found == 0 ? "none" : "several", known));
  }

  Result<ScenarioEvent> ReadPriority(const Fields& fields, std::int64_t at) const {
    ASSIGN_OR_RETURN(const YamlValue* const value, fields.Required("priority", ""));
    ASSIGN_OR_RETURN(const Fields change,
                     Fields::Open(file_, *value, "'priority' of an event", kPriorityKeys));
    ASSIGN_OR_RETURN(std::string job, JobOf(change, "job", at));
    RETURN_IF_ERROR(change.Required("to", "10000"));
    ASSIGN_OR_RETURN(const std::int64_t priority, change.Whole("to", 0, replay::kPriority));
    return SetPriority{.at = at, .job = std::move(job), .priority = static_cast<int>(priority)};
  }

  Result<std::string> NodeOf(const Fields& fields, std::string_view key) const {
    ASSIGN_OR_RETURN(std::string node, fields.Name(key, "n00"));
    if (node_names_.contains(node)) return node;
    return fields.Wrong(key, Format("is {}, which is no node; use one of {} to {}", node,
                                    nodes_.front().name, nodes_.back().name));
  }

  Result<std::string> JobOf(const Fields& fields, std::string_view key, std::int64_t at) const {
    ASSIGN_OR_RETURN(std::string job, fields.Name(key, "a"));
    const auto found = submitted_.find(job);
    if (found == submitted_.end()) {
      std::vector<std::string> names;
      for (const auto& [name, time] : submitted_) names.push_back(name);
      return fields.Wrong(key, Format("is {}, which is no job; use one of {}", job, Listed(names)));
    }
    if (at < found->second) {
      return fields.Wrong(key, Format("is {}, which is submitted later, at {}s; raise 'at'", job,
                                      found->second / 1000));
    }
    return job;
  }

  std::string_view file_;
  const std::vector<planner::NodeView>& nodes_;
  std::set<std::string_view> node_names_;
  std::map<std::string, std::int64_t> submitted_;  // milliseconds, by job
};

}  // namespace

Result<std::vector<ScenarioEvent>> ReadEvents(std::string_view file,
                                              std::span<const YamlValue> items,
                                              const std::vector<planner::NodeView>& nodes,
                                              const std::vector<ScenarioJob>& jobs) {
  const EventReader reader(file, nodes, jobs);
  std::vector<ScenarioEvent> events;
  for (const YamlValue& item : items) {
    ASSIGN_OR_RETURN(ScenarioEvent event, reader.Read(item));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace pliant::simulator
