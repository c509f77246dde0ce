#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/model/job_view.h"
#include "operator/controller/model/names.h"

// Jobs and pods for tests, described with few words.
namespace pliant::controller {

inline constexpr const char* kUid = "1a2b3c4d-0000";

inline WallTime At(double seconds) { return api::FromUnixSeconds(1'800'000'000 + seconds); }

// Sets the template as if the job had been decoded with it, and with the volume of `spec`.
inline void SetTemplate(const std::string& text, api::JobSpec& spec) {
  const auto pod_template = nlohmann::json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  spec.learner_template = api::ReadLearnerTemplate(pod_template, text, spec.checkpoint.volume_json,
                                                   spec.elastic.gpus_per_learner);
}

inline api::ElasticTrainingJob NewJob() {
  api::ElasticTrainingJob job;
  job.meta = {.name_space = "team-a",
              .name = "digits",
              .uid = kUid,
              .resource_version = "100",
              .generation = 1,
              .created = At(0)};
  job.spec.elastic = {.min_learners = 1, .max_learners = 8, .gpus_per_learner = 1};
  job.spec.training.global_batch_size = 256;
  job.spec.checkpoint.volume_json = R"({"persistentVolumeClaim":{"claimName":"checkpoints"}})";
  job.spec.failure_policy.permanent_exit_codes = {2};
  SetTemplate(R"({"spec":{"containers":[{"name":"learner","image":"example/train:1"}]}})",
              job.spec);
  return job;
}

// Admitted, with a coordinator of term 1 and `desired` planned learners.
inline api::ElasticTrainingJob AdmittedJob(int desired) {
  api::ElasticTrainingJob job = NewJob();
  job.status.observed_generation = 1;
  job.status.phase = desired > 0 ? api::JobPhase::kRunning : api::JobPhase::kQueued;
  job.status.training = api::FrozenTraining{.global_batch_size = 256, .logical_shards = 32};
  job.status.selector = LearnerSelector(job.meta);
  job.status.objects.coordinator_term = 1;
  job.status.objects.coordinator_image = "pliant:1";
  job.status.objects.admitted_template = job.spec.learner_template.hash;
  job.status.share.desired_learners = desired;
  job.status.objects.next_learner = desired;
  SetCondition(job.status, kConditionAdmitted, {api::ConditionStatus::kTrue, "Admitted", "ok"}, 1,
               At(0));
  return job;
}

enum class Life { kGated, kStarting, kRunning, kSucceeded, kFailed };

inline api::Pod Learner(int number, Life life, const std::string& node = "gpu-1") {
  const api::ObjectMeta job = NewJob().meta;
  api::Pod pod;
  pod.meta = {.name_space = job.name_space,
              .name = LearnerPodName(job, number),
              .uid = "uid-" + std::to_string(number),
              .resource_version = "7",
              .created = At(1),
              .labels = {{std::string(kLabelJobUid), job.uid},
                         {std::string(kLabelRole), std::string(kRoleLearner)},
                         {std::string(kLabelLearner), std::to_string(number)}},
              .owner_uid = job.uid,
              .owner_name = job.name};
  pod.requests.gpus = 1;
  pod.planned_node = node;
  if (life == Life::kGated) {
    pod.scheduling_gates = {std::string(kGate)};
    return pod;
  }
  pod.node_name = node;
  api::ContainerStatus container{.name = "learner"};
  switch (life) {
    case Life::kGated:
      break;
    case Life::kStarting:
      container.waiting_reason = "ContainerCreating";
      break;
    case Life::kRunning:
      container.running = true;
      pod.phase = api::PodPhase::kRunning;
      break;
    case Life::kSucceeded:
      container.terminated = api::Termination{.message = R"({"reason":"Drained"})"};
      pod.phase = api::PodPhase::kSucceeded;
      break;
    case Life::kFailed:
      container.terminated = api::Termination{.exit_code = 1};
      pod.phase = api::PodPhase::kFailed;
      break;
  }
  pod.containers = {std::move(container)};
  return pod;
}

inline api::Pod Deleting(api::Pod pod) {
  pod.meta.deleted = At(60);
  return pod;
}

inline api::Pod Ended(api::Pod pod, int exit_code, const std::string& message) {
  pod.phase = exit_code == 0 ? api::PodPhase::kSucceeded : api::PodPhase::kFailed;
  pod.containers = {{.name = "learner",
                     .terminated = api::Termination{.exit_code = exit_code, .message = message}}};
  return pod;
}

inline api::Pod Coordinator(std::int64_t term, bool running = true) {
  const api::ObjectMeta job = NewJob().meta;
  api::Pod pod;
  pod.meta = {.name_space = job.name_space,
              .name = CoordinatorPodName(job, term),
              .uid = "coordinator-uid-" + std::to_string(term),
              .resource_version = "8",
              .labels = {{std::string(kLabelJobUid), job.uid},
                         {std::string(kLabelRole), std::string(kRoleCoordinator)},
                         {std::string(kLabelTerm), std::to_string(term)}},
              .owner_uid = job.uid,
              .owner_name = job.name};
  pod.node_name = "cpu-1";
  pod.ip = "10.1.0.9";
  pod.containers = {{.name = "coordinator", .running = running}};
  if (running) pod.containers[0].running_since = At(0);
  pod.phase = running ? api::PodPhase::kRunning : api::PodPhase::kPending;
  return pod;
}

inline api::Service ServiceFor(std::int64_t term) {
  const api::ObjectMeta job = NewJob().meta;
  return {.meta = {.name_space = job.name_space,
                   .name = CoordinatorName(job),
                   .uid = "service-uid",
                   .resource_version = "9",
                   .owner_uid = job.uid,
                   .owner_name = job.name},
          .cluster_ip = "10.0.0.7",
          .selector = {{std::string(kLabelTerm), std::to_string(term)}}};
}

inline std::string Name(int number) { return LearnerPodName(NewJob().meta, number); }

template <typename T>
std::shared_ptr<const T> Shared(T value) {
  return std::make_shared<const T>(std::move(value));
}

// Makes a private copy of a shared value, so that a test can change it.
template <typename T>
T& Edit(std::shared_ptr<const T>& shared) {
  const auto copy = std::make_shared<T>(*shared);
  shared = copy;
  return *copy;
}

// A coordinator that answers, and whose membership has these learners.
inline CoordinatorView Training(std::initializer_list<int> members, std::int64_t step = 10) {
  Progress progress{
      .term = 1, .state = CoordinatorState::kRunning, .membership_id = "1.1", .step = step};
  for (const int member : members) {
    progress.members.push_back(Name(member));
    progress.learners.push_back(
        {.name = Name(member), .pod_uid = "uid-" + std::to_string(member), .state = "Member"});
  }
  return {.progress = Shared(std::move(progress)), .reachable = true};
}

// A job that trains with learners 0 to size-1.
inline JobView TrainingView(int size) {
  JobView view{.job = Shared(AdmittedJob(size)),
               .needs = Shared(planner::PodNeeds{.resources = {.gpus = 1}}),
               .coordinators = {Coordinator(1)},
               .service = Shared(ServiceFor(1))};
  view.coordinator = Training({});
  for (int number = 0; number < size; ++number) {
    view.learners.push_back(Learner(number, Life::kRunning));
    for (auto* of : {&view.soft_state.contacts.named, &view.soft_state.contacts.met})
      of->insert("uid-" + std::to_string(number));
    Edit(view.coordinator.progress).members.push_back(Name(number));
    Edit(view.coordinator.progress)
        .learners.push_back(
            {.name = Name(number), .pod_uid = "uid-" + std::to_string(number), .state = "Member"});
  }
  return view;
}

}  // namespace pliant::controller
