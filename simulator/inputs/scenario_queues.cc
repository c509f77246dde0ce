#include "simulator/inputs/scenario_queues.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/format.h"
#include "operator/api/training_queue.h"
#include "operator/replay/describe.h"
#include "operator/replay/enumerators.h"
#include "simulator/inputs/fields.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::array<std::string_view, 8> kQueueKeys = {
    "weight", "guaranteed", "limit", "lendingLimit", "policy", "bias", "queueing", "reclaim"};

Result<planner::QueueView> ReadQueue(std::string_view file, const YamlValue& value) {
  if (!IsName(value.key)) {
    return WrongAt(file, value.key_line,
                   Format("the name of a queue is {}; write 1 to {} letters, digits and -_.",
                          Shown(std::string_view(value.key)), kMaxNameBytes));
  }
  planner::QueueView queue{.name = value.key};
  ASSIGN_OR_RETURN(const Fields fields,
                   Fields::Open(file, value, "queue " + queue.name, kQueueKeys));
  ASSIGN_OR_RETURN(const std::int64_t weight,
                   fields.Whole("weight", queue.weight, replay::kWeight));
  queue.weight = static_cast<int>(weight);
  ASSIGN_OR_RETURN(queue.guaranteed_gpus, fields.Whole("guaranteed", 0, replay::kGpus));
  ASSIGN_OR_RETURN(queue.limit_gpus, fields.OptionalWhole("limit", replay::kGpus));
  ASSIGN_OR_RETURN(queue.lending_limit_gpus, fields.OptionalWhole("lendingLimit", replay::kGpus));
  ASSIGN_OR_RETURN(queue.policy,
                   fields.Word("policy", queue.policy, replay::kLast<planner::QueuePolicy>));
  ASSIGN_OR_RETURN(const api::Bias bias,
                   fields.Word("bias", api::Bias::kNone, api::Bias::kShortJobs));
  queue.favors_short_jobs = bias == api::Bias::kShortJobs;
  ASSIGN_OR_RETURN(const api::Queueing queueing,
                   fields.Word("queueing", api::Queueing::kBestEffort, api::Queueing::kStrict));
  queue.strict = queueing == api::Queueing::kStrict;
  ASSIGN_OR_RETURN(const api::Reclaim reclaim,
                   fields.Word("reclaim", api::Reclaim::kEvict, api::Reclaim::kShrinkOnly));
  queue.evicts = reclaim == api::Reclaim::kEvict;
  if (const Status sound = CheckQueue(queue); !sound) {
    return fields.Wrong(Format("queue {}: {}", queue.name, sound.error().message));
  }
  return queue;
}

}  // namespace

Result<std::vector<planner::QueueView>> ReadQueues(std::string_view file, const YamlValue& value) {
  if (value.kind != YamlKind::kMapping) {
    return WrongAt(file, value.line,
                   Format("'queues' is {}; write a mapping, for example {{research: {{weight: "
                          "200}}}}",
                          Shown(value)));
  }
  std::vector<planner::QueueView> queues;
  for (const YamlValue& each : value.items) {
    ASSIGN_OR_RETURN(planner::QueueView queue, ReadQueue(file, each));
    queues.push_back(std::move(queue));
  }
  std::ranges::sort(queues, {}, &planner::QueueView::name);
  return queues;
}

Status CheckQueue(const planner::QueueView& queue) {
  if (queue.limit_gpus && queue.guaranteed_gpus > *queue.limit_gpus) {
    return Invalid(
        Format("guaranteed is {}, more than limit, which is {}; lower guaranteed, or "
               "raise limit",
               queue.guaranteed_gpus, *queue.limit_gpus));
  }
  if (queue.lending_limit_gpus && *queue.lending_limit_gpus > queue.guaranteed_gpus) {
    return Invalid(
        Format("lendingLimit is {}, more than guaranteed, which is {}; lower "
               "lendingLimit, or raise guaranteed",
               *queue.lending_limit_gpus, queue.guaranteed_gpus));
  }
  return {};
}

}  // namespace pliant::simulator
