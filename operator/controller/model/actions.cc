#include "operator/controller/model/actions.h"

#include <string_view>
#include <utility>

#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

// A pod whose creation is under way, as far as a decision needs to know it.
Effect PendingPod(const api::ObjectMeta& job, std::string name, std::string_view role,
                  std::string_view number_label, std::int64_t number, api::WallTime now) {
  Effect effect{.kind = Effect::Kind::kPodCreated, .name = std::move(name)};
  effect.pod.meta = {.name_space = job.name_space,
                     .name = effect.name,
                     .created = now,
                     .labels = {{std::string(kLabelJobUid), job.uid},
                                {std::string(kLabelRole), std::string(role)},
                                {std::string(number_label), std::to_string(number)}},
                     .owner_uid = job.uid,
                     .owner_name = job.name};
  return effect;
}

}  // namespace

Effect DeleteService::EffectOn(const api::ObjectMeta& job, api::WallTime) const {
  return {.kind = Effect::Kind::kServiceDeleted, .name = CoordinatorName(job)};
}

Effect CreateCoordinator::EffectOn(const api::ObjectMeta& job, api::WallTime now) const {
  return PendingPod(job, CoordinatorPodName(job, term), kRoleCoordinator, kLabelTerm, term, now);
}

Effect CreateLearner::EffectOn(const api::ObjectMeta& job, api::WallTime now) const {
  Effect effect =
      PendingPod(job, LearnerPodName(job, number), kRoleLearner, kLabelLearner, number, now);
  effect.pod.planned_node = place.node;
  effect.pod.scheduling_gates = {std::string(kGate)};
  return effect;
}

Effect OpenGate::EffectOn(const api::ObjectMeta&, api::WallTime) const {
  return {.kind = Effect::Kind::kGateOpened,
          .name = pod,
          .replaced_version = resource_version,
          .gates_left = gates_left};
}

Effect DeletePod::EffectOn(const api::ObjectMeta&, api::WallTime) const {
  return {.kind = Effect::Kind::kPodDeleted, .name = pod};
}

bool ServesLearners(const Action& action) {
  const ActionProperties& properties = PropertiesOf(action);
  return properties.serves_learners || properties.makes_pod;
}

const ActionProperties& PropertiesOf(const Action& action) {
  return std::visit(
      [](const auto& each) -> const ActionProperties& {
        return std::decay_t<decltype(each)>::kProperties;
      },
      action);
}

std::optional<Effect> EffectOf(const Action& action, const api::ObjectMeta& job,
                               api::WallTime now) {
  return std::visit(
      [&](const auto& each) -> std::optional<Effect> {
        if constexpr (requires { each.EffectOn(job, now); }) return each.EffectOn(job, now);
        return std::nullopt;
      },
      action);
}

}  // namespace pliant::controller
