#include "operator/controller/model/grant_refusals.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

// Well above the time that the quota controller takes to count again.
constexpr std::chrono::seconds kQuotaLag{10};

}  // namespace

bool OnQuotaFull(api::WallTime now, GrantRefusals& refusals) {
  if (!refusals.quota_full_since) refusals.quota_full_since = now;
  return now - *refusals.quota_full_since >= kQuotaLag;
}

void OnRefusal(std::span<const Action> undone, const std::string& message, api::WallTime now,
               GrantRefusals& refusals) {
  refusals.message = message;
  refusals.unanswered = false;
  const auto serves_learners = [](const Action& each) {
    return PropertiesOf(each).serves_learners;
  };
  if (std::ranges::none_of(undone, serves_learners)) return;
  if (!refusals.grants) refusals.grants = RefusedGrants{.since = now, .gates = {}};
  for (const Action& action : undone) {
    const auto* gate = std::get_if<OpenGate>(&action);
    if (gate != nullptr) refusals.grants->gates.insert(gate->pod);
  }
}

void OnNoAnswer(const api::ObjectMeta& job, std::span<const Action> undone,
                const std::string& message, api::WallTime now, GrantRefusals& refusals) {
  OnRefusal(undone, message, now, refusals);
  refusals.unanswered = true;
  if (undone.empty() || !refusals.grants) return;
  // The pod may exist: it counts until the server says that it does not, but nothing may rely on
  // it.
  if (const auto* learner = std::get_if<CreateLearner>(&undone.front())) {
    refusals.grants->gates.insert(LearnerPodName(job, learner->number));
  }
}

void OnAllDone(GrantRefusals& refusals) {
  refusals.message.clear();
  refusals.unanswered = false;
  refusals.grants.reset();
  refusals.quota_full_since.reset();
}

void OnCap(const std::optional<planner::DemandCap>& cap, GrantRefusals& refusals) {
  const auto before = std::exchange(refusals.cap, cap);
  if (cap && cap != before) refusals.grants.reset();
}

}  // namespace pliant::controller
