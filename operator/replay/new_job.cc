#include "operator/replay/new_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "operator/controller/lifecycle/admission.h"
#include "operator/controller/model/job_view.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/explain.h"
#include "operator/replay/yaml_object.h"

namespace pliant::replay {
namespace {

using nlohmann::json;

constexpr const char* kNameOfNewJob = "new-job";

// The API server sets what the file leaves open. What is of the wrong type, DecodeJob refuses.
void CompleteMetadata(json& object) {
  json& metadata = object["metadata"];
  if (metadata.is_null()) metadata = json::object();
  if (!metadata.is_object()) return;
  for (const auto& [field, value] :
       {std::pair("namespace", "default"), std::pair("name", kNameOfNewJob)}) {
    if (!metadata.contains(field)) metadata[field] = value;
  }
}

// A queue that the snapshot lacks is of the pool that QueueMembership has then.
std::string PoolOfQueue(const planner::ClusterSnapshot& snapshot, const std::string& queue) {
  const auto at = std::ranges::find(snapshot.queues, queue, &planner::QueueView::name);
  return at == snapshot.queues.end() ? std::string(planner::kBuiltInPool) : at->pool;
}

}  // namespace

Result<planner::JobView> NewJob(const std::string& yaml, const api::JobSettings& settings,
                                const planner::ClusterSnapshot& snapshot) {
  ASSIGN_OR_RETURN(json object, ObjectOfKind(yaml, "ElasticTrainingJob"));
  CompleteMetadata(object);
  object.erase("status");
  ASSIGN_OR_RETURN(const api::ElasticTrainingJob job, api::DecodeJob(object, settings));
  const api::JobSpec& spec = job.spec;
  if (!job.unreadable.empty()) return Invalid(job.unreadable);
  if (!spec.learner_template.error.empty()) return Invalid(spec.learner_template.error);
  ASSIGN_OR_RETURN(const api::FrozenTraining training, controller::FreezeTraining(spec));
  RETURN_IF_ERROR(ParseJobName(job.meta.name_space + "/" + job.meta.name));
  planner::JobView view = controller::PlannedFrom(spec, spec.learner_template.needs.get());
  view.key = {.name_space = job.meta.name_space, .name = job.meta.name};
  view.key.uid = StandInUid(view.key);
  view.pool = PoolOfQueue(snapshot, spec.queue);
  view.training.logical_shards = training.logical_shards;
  view.training.reproducibility = training.reproducibility;
  view.submitted = snapshot.now;
  const bool exists = std::ranges::any_of(snapshot.jobs, [&](const planner::JobView& each) {
    return each.key.name_space == view.key.name_space && each.key.name == view.key.name;
  });
  if (exists) {
    return Invalid(Format("metadata.name: job {} is in the snapshot already; choose another",
                          ToString(view.key)));
  }
  return view;
}

}  // namespace pliant::replay
