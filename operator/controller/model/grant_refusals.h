#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "operator/api/meta.h"
#include "operator/controller/model/actions.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// Granted learners whose pods could not be created, or whose gates could not be opened, because the
// API server refused a request.
struct RefusedGrants {
  api::WallTime since;          // the first refusal since the last success
  std::set<std::string> gates;  // pods, if they exist, whose gates stayed closed
  bool operator==(const RefusedGrants&) const = default;
};

// The requests that the API server refused, and the grants that this blocked.
struct GrantRefusals {
  std::string message;      // why the last request failed; empty: it succeeded
  bool unanswered = false;  // the server gave no answer at all
  std::optional<RefusedGrants> grants;
  std::optional<api::WallTime> quota_full_since;  // no learner could be created since then
  std::optional<planner::DemandCap> cap;          // the planner's limit on the job's demand
  bool operator==(const GrantRefusals&) const = default;
};

// A quota of GPUs had no room for a learner. The server counts a pod for a moment after its end, so
// this is a refusal only if it lasts. Returns whether it is one.
bool OnQuotaFull(api::WallTime now, GrantRefusals& refusals);
// The API server refused the first of `undone`, or the write of status before it, with this
// `message`: the other actions were not tried.
void OnRefusal(std::span<const Action> undone, const std::string& message, api::WallTime now,
               GrantRefusals& refusals);
// The API server did not say whether it created the first of `undone`, a pod of `job`.
void OnNoAnswer(const api::ObjectMeta& job, std::span<const Action> undone,
                const std::string& message, api::WallTime now, GrantRefusals& refusals);
// All actions of the decision were done.
void OnAllDone(GrantRefusals& refusals);
// Takes the planner's current cap. Grants that a new cap withdraws no longer count as refused: the
// next grant has a `since` of its own.
void OnCap(const std::optional<planner::DemandCap>& cap, GrantRefusals& refusals);

}  // namespace pliant::controller
