#include "operator/controller/lifecycle/coordinator_policy.h"

#include <algorithm>
#include <chrono>

#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

constexpr seconds kFirstDelay{2};
constexpr seconds kLongestDelay{120};
// Longer than a kubelet takes to restart the container.
constexpr seconds kMaxSilence{30};

// A leader that another one has succeeded stops leading sooner. So the coordinator's number is not
// that of a leader: it is from before a backup, or invented.
constexpr seconds kMaxRefusal{10};

seconds Delay(int tries) {
  return std::min(kFirstDelay * (1 << std::min(tries, 10)), kLongestDelay);
}

bool ProgramRuns(const api::Pod& pod) {
  return std::ranges::any_of(pod.containers, &api::ContainerStatus::running);
}

// When a coordinator that runs but does not answer, or refuses our plans, is replaced; nullopt if
// it does neither. The time grows with each replacement in a row: the fault may be ours.
std::optional<WallTime> AbandonedAt(const JobView& view, const api::Pod& current) {
  if (const auto& refused = view.coordinator.refused_since) {
    return std::max(*refused + kMaxRefusal, view.soft_state.coordinator_retry.not_before);
  }
  if (!view.coordinator.silent_since || !ProgramRuns(current)) return std::nullopt;
  return *view.coordinator.silent_since + kMaxSilence +
         10 * Delay(view.soft_state.coordinator_retry.tries);
}

void DeletePods(const JobView& view, const api::Pod* kept, const std::string& why,
                std::vector<Action>& actions) {
  for (const api::Pod& pod : view.coordinators) {
    if (&pod == kept || pod.deleting()) continue;
    actions.emplace_back(DeletePod{.pod = pod.meta.name, .uid = pod.meta.uid, .why = why});
  }
}

void LeadServiceTo(std::int64_t term, const JobView& view, std::vector<Action>& actions) {
  if (!view.service) {
    actions.emplace_back(CreateService{term});
    return;
  }
  const auto selected = view.service->selector.find(std::string(kLabelTerm));
  if (selected != view.service->selector.end() && selected->second == std::to_string(term)) return;
  actions.emplace_back(
      PointService{.term = term, .resource_version = view.service->meta.resource_version});
}

}  // namespace

const api::Pod* CurrentCoordinator(const JobView& view) {
  const auto found = std::ranges::find_if(view.coordinators, [&](const api::Pod& pod) {
    return CoordinatorTerm(pod) == view.job->status.objects.coordinator_term && !pod.ended() &&
           !pod.deleting();
  });
  return found == view.coordinators.end() ? nullptr : &*found;
}

CoordinatorOutcome DecideCoordinator(const JobView& view, bool needed, WallTime now) {
  CoordinatorOutcome outcome{.term = view.job->status.objects.coordinator_term,
                             .retry = view.soft_state.coordinator_retry};
  if (!needed) {
    DeletePods(view, nullptr, "no learner needs a coordinator", outcome.actions);
    return outcome;
  }
  const api::Pod* current = CurrentCoordinator(view);
  if (current != nullptr) {
    const auto abandoned_at = AbandonedAt(view, *current);
    if (!abandoned_at || now < *abandoned_at) {
      LeadServiceTo(outcome.term, view, outcome.actions);
      DeletePods(view, current, "a newer coordinator has taken over", outcome.actions);
      outcome.look_again = abandoned_at;
      return outcome;
    }
  }
  if (now < outcome.retry.not_before) {
    outcome.look_again = outcome.retry.not_before;
    return outcome;
  }
  // The term in status was raised for a pod that may have been created and may still run unseen:
  // only a higher term is safe.
  ++outcome.term;
  outcome.retry.not_before = now + Delay(outcome.retry.tries);
  ++outcome.retry.tries;
  LeadServiceTo(outcome.term, view, outcome.actions);
  const std::string service = view.service ? view.service->meta.uid : "";
  outcome.actions.emplace_back(CreateSecrets{outcome.term, service});
  outcome.actions.emplace_back(PutNetworkPolicies{service});
  outcome.actions.emplace_back(CreateCoordinator{outcome.term});
  DeletePods(view, nullptr,
             view.coordinator.refused_since ? "it refuses the plans of the present leader"
                                            : "it does not answer",
             outcome.actions);
  return outcome;
}

}  // namespace pliant::controller
