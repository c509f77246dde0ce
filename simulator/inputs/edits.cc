#include "simulator/inputs/edits.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/format.h"
#include "operator/api/training_queue.h"
#include "operator/replay/describe.h"
#include "operator/replay/enumerators.h"
#include "operator/replay/text_table.h"
#include "simulator/inputs/values.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::string_view kForms =
    "queue.NAME.FIELD=VALUE, job.NAMESPACE/NAME.FIELD=VALUE, nodes+=COUNTxGPUS, "
    "nodes+=COUNTxGPUS@POOL or nodes-=NAME";

template <typename Change>
struct Field {
  std::string_view name;
  Result<Change> (*parse)(std::string_view value);
};

Result<std::optional<std::int64_t>> ParseGpusOrNone(std::string_view value) {
  if (value == "none") return std::nullopt;
  auto gpus = ParseWhole(value, replay::kGpus);
  if (!gpus) return Invalid(gpus.error().message + ", or none");
  return *gpus;
}

constexpr std::array<Field<QueueChange>, 7> kQueueFields = {{
    {"weight",
     [](std::string_view value) -> Result<QueueChange> {
       ASSIGN_OR_RETURN(const std::int64_t weight, ParseWhole(value, replay::kWeight));
       return WeightChange{static_cast<int>(weight)};
     }},
    {"guaranteed",
     [](std::string_view value) -> Result<QueueChange> {
       ASSIGN_OR_RETURN(const std::int64_t gpus, ParseWhole(value, replay::kGpus));
       return GuaranteeChange{gpus};
     }},
    {"limit",
     [](std::string_view value) -> Result<QueueChange> {
       ASSIGN_OR_RETURN(const std::optional<std::int64_t> gpus, ParseGpusOrNone(value));
       return LimitChange{gpus};
     }},
    {"lendingLimit",
     [](std::string_view value) -> Result<QueueChange> {
       ASSIGN_OR_RETURN(const std::optional<std::int64_t> gpus, ParseGpusOrNone(value));
       return LendingLimitChange{gpus};
     }},
    {"policy",
     [](std::string_view value) -> Result<QueueChange> {
       return ParseWord(value, replay::kLast<planner::QueuePolicy>);
     }},
    {"bias",
     [](std::string_view value) -> Result<QueueChange> {
       ASSIGN_OR_RETURN(const api::Bias bias, ParseWord(value, api::Bias::kShortJobs));
       return BiasChange{bias == api::Bias::kShortJobs};
     }},
    {"stop",
     [](std::string_view value) -> Result<QueueChange> {
       return ParseWord(value, replay::kLast<planner::QueueStop>);
     }},
}};

constexpr std::array<Field<JobChange>, 4> kJobFields = {{
    {"priority",
     [](std::string_view value) -> Result<JobChange> {
       ASSIGN_OR_RETURN(const std::int64_t priority, ParseWhole(value, replay::kPriority));
       return PriorityChange{static_cast<int>(priority)};
     }},
    {"minLearners",
     [](std::string_view value) -> Result<JobChange> {
       ASSIGN_OR_RETURN(const std::int64_t learners, ParseWhole(value, replay::kLearners));
       return MinLearnersChange{static_cast<int>(learners)};
     }},
    {"maxLearners",
     [](std::string_view value) -> Result<JobChange> {
       ASSIGN_OR_RETURN(const std::int64_t learners, ParseWhole(value, replay::kLearners));
       return MaxLearnersChange{static_cast<int>(learners)};
     }},
    {"suspended",
     [](std::string_view value) -> Result<JobChange> {
       ASSIGN_OR_RETURN(const bool suspended, ParseFlag(value));
       return SuspensionChange{suspended};
     }},
}};

template <typename Change, std::size_t kCount>
Result<Change> ParseField(const std::array<Field<Change>, kCount>& fields, std::string_view name,
                          std::string_view value) {
  std::string known;
  for (const Field<Change>& field : fields) {
    if (field.name == name) {
      auto change = field.parse(value);
      if (!change) return Invalid(Format("{} {}", name, change.error().message));
      return change;
    }
    known.append(known.empty() ? "" : ", ").append(field.name);
  }
  return Invalid(Format("there is no field {}; use one of {}", Shown(name), known));
}

// The parts of "queue.research.weight=300" after "queue.". The name may contain dots.
struct Assignment {
  std::string_view name;
  std::string_view field;
  std::string_view value;
};

Result<Assignment> ParseAssignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t dot = text.substr(0, equals).rfind('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot == 0) {
    return Invalid(Format("write one of {}", kForms));
  }
  return Assignment{.name = text.substr(0, dot),
                    .field = text.substr(dot + 1, equals - dot - 1),
                    .value = text.substr(equals + 1)};
}

Result<AddNodes> ParseAddedNodes(std::string_view text) {
  const std::size_t at = text.find('@');
  auto group = ParseNodeGroup(text.substr(0, at));
  if (!group) return Invalid("the group of nodes " + group.error().message);
  AddNodes added{.group = *std::move(group)};
  if (at != std::string_view::npos) added.pool = text.substr(at + 1);
  return added;
}

Result<decltype(Edit::change)> ParseChange(std::string_view text) {
  constexpr std::string_view kQueue = "queue.";
  constexpr std::string_view kJob = "job.";
  constexpr std::string_view kAdded = "nodes+=";
  constexpr std::string_view kRemoved = "nodes-=";
  if (text.starts_with(kAdded)) return ParseAddedNodes(text.substr(kAdded.size()));
  if (text.starts_with(kRemoved)) return RemoveNode{std::string(text.substr(kRemoved.size()))};
  if (text.starts_with(kQueue)) {
    ASSIGN_OR_RETURN(const Assignment parts, ParseAssignment(text.substr(kQueue.size())));
    ASSIGN_OR_RETURN(QueueChange change, ParseField(kQueueFields, parts.field, parts.value));
    return EditQueue{.queue = std::string(parts.name), .change = change};
  }
  if (text.starts_with(kJob)) {
    ASSIGN_OR_RETURN(const Assignment parts, ParseAssignment(text.substr(kJob.size())));
    ASSIGN_OR_RETURN(replay::JobName job, replay::ParseJobName(parts.name));
    ASSIGN_OR_RETURN(JobChange change, ParseField(kJobFields, parts.field, parts.value));
    return EditJob{.job = std::move(job), .change = change};
  }
  return Invalid(Format("write one of {}", kForms));
}

}  // namespace

Result<Edit> ParseEdit(std::string_view text) {
  auto change = ParseChange(text);
  if (!change) {
    return Invalid(Format("edit '{}': {}", replay::Printable(text), change.error().message));
  }
  return Edit{.text = std::string(text), .change = *std::move(change)};
}

Result<std::vector<Edit>> ParseEdits(std::span<const std::string> texts) {
  std::vector<Edit> edits;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Edit edit, ParseEdit(text));
    edits.push_back(std::move(edit));
  }
  return edits;
}

}  // namespace pliant::simulator
