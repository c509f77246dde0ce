#include "operator/controller/model/job_view.h"

#include <algorithm>

#include "operator/controller/model/names.h"

namespace pliant::controller {

bool IsGated(const api::Pod& learner) {
  return std::ranges::contains(learner.scheduling_gates, kGate);
}

const TemplateCheck* CurrentTemplateCheck(const JobView& view) {
  const std::optional<TemplateCheck>& check = view.soft_state.checked_template.check;
  return check && check->generation == view.job->meta.generation ? &*check : nullptr;
}

bool IsRunning(const api::Pod& learner) {
  const api::ContainerStatus* container = api::FindContainer(learner, kLearnerContainer);
  return container != nullptr && container->running;
}

bool HasStarted(const JobView& view, const api::Pod& learner) {
  return IsRunning(learner) && view.soft_state.contacts.met.contains(learner.meta.uid);
}

std::string NodeOf(const api::Pod& pod) {
  return pod.node_name.empty() ? pod.planned_node : pod.node_name;
}

bool HasLiveLearners(const JobView& view) {
  return !std::ranges::all_of(view.learners, &api::Pod::ended);
}

bool IsSuspended(const JobView& view) {
  return view.job->spec.suspend || view.job->meta.deleted.has_value();
}

std::shared_ptr<const planner::PodNeeds> NeedsOfLearner(const JobView& view) {
  const AdmittedNeeds* admitted = AdmittedNeedsOf(*view.job, view.soft_state.checked_template);
  return admitted != nullptr ? admitted->needs : view.needs;
}

planner::JobView PlannedFrom(const api::JobSpec& spec, const planner::PodNeeds* needs) {
  planner::JobView planned{.queue = spec.queue,
                           .priority = spec.priority,
                           .min_learners = spec.elastic.min_learners,
                           .max_learners = spec.elastic.max_learners,
                           .placement = spec.placement,
                           .training = {.min_efficiency = spec.elastic.min_efficiency},
                           .suspended = spec.suspend,
                           .min_runtime = spec.resize.min_runtime,
                           .cooldown = spec.resize.cooldown,
                           .start_timeout = spec.start_timeout};
  if (needs != nullptr) planned.needs = *needs;
  planned.needs.resources.gpus = spec.elastic.gpus_per_learner;
  return planned;
}

int CountedMinimum(const api::ElasticTrainingJob& job) {
  return planner::CountedMinimum(job.spec.elastic.min_learners, job.status.share.admitted_minimum);
}

bool NeedsAreGuessed(const JobView& view) {
  return AdmittedNeedsOf(*view.job, view.soft_state.checked_template) == nullptr;
}

bool IsAdmitted(const api::JobSpec& spec, const api::JobStatus& status) {
  const api::Condition* admitted = api::FindCondition(status, "Admitted");
  if (admitted == nullptr || admitted->status != api::ConditionStatus::kTrue || !status.training) {
    return false;
  }
  return status.objects.admitted_template == spec.learner_template.hash;
}

std::optional<WallTime> TimeOf(const JobView& view, const std::optional<WallTime>& in_status) {
  if (!in_status) return std::nullopt;
  const auto ahead = view.soft_state.times_ahead.find(*in_status);
  return ahead == view.soft_state.times_ahead.end() ? *in_status : ahead->second;
}

std::int64_t CommittedStep(const JobView& view) {
  std::int64_t step = view.job->status.progress.step.value_or(0);
  if (view.coordinator.progress) {
    step = std::max(step, view.coordinator.progress->step.value_or(0));
  }
  return step;
}

}  // namespace pliant::controller
