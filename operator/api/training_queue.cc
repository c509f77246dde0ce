#include "operator/api/training_queue.h"

#include <array>
#include <nlohmann/json.hpp>

#include "operator/api/enum_field.h"
#include "operator/api/fields.h"
#include "operator/api/spec_and_status.h"

namespace pliant::api {
namespace {

constexpr std::array kPolicies = {QueuePolicy::kFairShare, QueuePolicy::kPriority,
                                  QueuePolicy::kFifo, QueuePolicy::kThroughput};
constexpr std::array kBiases = {Bias::kNone, Bias::kShortJobs};
constexpr std::array kQueueings = {Queueing::kBestEffort, Queueing::kStrict};
constexpr std::array kReclaims = {Reclaim::kEvict, Reclaim::kShrinkOnly};
constexpr std::array kStops = {QueueStop::kNone, QueueStop::kHold, QueueStop::kDrain};

std::optional<int> OptionalGpus(Fields& fields, const char* name) {
  const auto gpus = fields.OptionalInt(name, 0, kMaxGpus);
  return gpus ? std::optional(static_cast<int>(*gpus)) : std::nullopt;
}

QueuePriority ReadPriority(Fields& fields) {
  const QueuePriority priority{.fallback = fields.Int("default", 5000, 1, kMaxPriority),
                               .max = fields.Int("max", kMaxPriority, 1, kMaxPriority)};
  if (priority.fallback > priority.max) fields.Wrong("default", "greater than max");
  return priority;
}

void ReadQueueSpec(Fields& fields, TrainingQueueSpec& spec) {
  spec.pool = fields.String("pool", std::string(planner::kBuiltInPool), 63);
  if (!fields.Has("namespaceSelector")) fields.Wrong("namespaceSelector", "missing");
  fields.Object("namespaceSelector",
                [&](Fields& f) { spec.namespace_selector = ReadLabelSelector(f); });
  spec.weight = fields.Int("weight", 100, 1, kMaxWeight);
  spec.guaranteed = fields.Int("guaranteed", 0, 0, kMaxGpus);
  spec.limit = OptionalGpus(fields, "limit");
  spec.lending_limit = OptionalGpus(fields, "lendingLimit");
  if (spec.guaranteed > spec.limit.value_or(kMaxGpus)) {
    fields.Wrong("guaranteed", "greater than limit");
  }
  if (spec.lending_limit.value_or(0) > spec.guaranteed) {
    fields.Wrong("lendingLimit", "greater than guaranteed");
  }
  spec.policy = ReadEnum(fields, "policy", spec.policy, kPolicies);
  spec.bias = ReadEnum(fields, "bias", spec.bias, kBiases);
  spec.queueing = ReadEnum(fields, "queueing", spec.queueing, kQueueings);
  spec.reclaim = ReadEnum(fields, "reclaim", spec.reclaim, kReclaims);
  fields.Object("priority", [&](Fields& f) { spec.priority = ReadPriority(f); });
  spec.service_half_life = std::chrono::seconds(
      fields.Int("serviceHalfLifeSeconds", 86400, kMinHalfLifeSeconds, kMaxHalfLifeSeconds));
  spec.stop = ReadEnum(fields, "stop", spec.stop, kStops);
}

TrainingQueueStatus ReadQueueStatus(Fields& fields) {
  const auto count = [&fields](const char* name) { return fields.Long(name, 0, 0, kMaxCount); };
  return {.observed_generation = count("observedGeneration"),
          .demand = count("demand"),
          .entitled = count("entitled"),
          .allocated = count("allocated"),
          .borrowed = count("borrowed"),
          .lent = count("lent"),
          .waiting = count("waiting"),
          .running = count("running"),
          .reason = fields.Sentence("reason", kMaxReasonBytes),
          .conditions = ReadConditions(fields)};
}

}  // namespace

std::string_view ToString(Queueing queueing) {
  return queueing == Queueing::kBestEffort ? "BestEffort" : "Strict";
}

std::string_view ToString(Bias bias) { return bias == Bias::kNone ? "None" : "ShortJobs"; }

std::string_view ToString(Reclaim reclaim) {
  return reclaim == Reclaim::kEvict ? "Evict" : "ShrinkOnly";
}

Result<TrainingQueue> DecodeTrainingQueue(const nlohmann::json& object) {
  TrainingQueue queue;
  ASSIGN_OR_RETURN(queue.meta, DecodeMeta(object, "pliant.dev/"));
  // A status that is not understood is overwritten: it only reports.
  queue.unreadable = ReadSpecAndStatus(
                         object, [&](Fields& fields) { ReadQueueSpec(fields, queue.spec); },
                         [&](Fields& fields) { queue.status = ReadQueueStatus(fields); })
                         .spec;
  return queue;
}

nlohmann::json EncodeStatus(const TrainingQueueStatus& status) {
  using nlohmann::json;
  return {{"observedGeneration", status.observed_generation},
          {"demand", status.demand},
          {"entitled", status.entitled},
          {"allocated", status.allocated},
          {"borrowed", status.borrowed},
          {"lent", status.lent},
          {"waiting", status.waiting},
          {"running", status.running},
          {"reason", status.reason.empty() ? json() : json(status.reason)},
          {"conditions", EncodeConditions(status.conditions)}};
}

}  // namespace pliant::api
