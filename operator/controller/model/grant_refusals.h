#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "operator/api/meta.h"
#include "operator/controller/model/actions.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// Granted learners that could not be made, or let through their gates, because the API server
// refused something.
struct RefusedGrants {
  api::WallTime since;          // without success in between
  std::set<std::string> gates;  // of these learners they could not be opened, if there are any
  bool operator==(const RefusedGrants&) const = default;
};

// What the API server would not do, and what became of the grants that it held up.
struct GrantRefusals {
  std::string message;      // why it would not do what was asked last; empty: it did
  bool unanswered = false;  // it did not say so, nor anything else
  std::optional<RefusedGrants> grants;
  std::optional<planner::DemandCap> cap;  // what the planner has withdrawn of the job's demand
  bool operator==(const GrantRefusals&) const = default;
};

// The API server has refused the first of `undone`, or the write of status before it, in these
// words: the others were not tried.
void OnRefusal(std::span<const Action> undone, const std::string& message, api::WallTime now,
               GrantRefusals& refusals);
// It did not say whether it made the first of them, a pod of `job`.
void OnNoAnswer(const api::ObjectMeta& job, std::span<const Action> undone,
                const std::string& message, api::WallTime now, GrantRefusals& refusals);
// All was done that was decided.
void OnAllDone(GrantRefusals& refusals);
// The planner's present cap. What it withdraws is not refused any more: the next grant has a time
// of its own.
void OnCap(const std::optional<planner::DemandCap>& cap, GrantRefusals& refusals);

}  // namespace pliant::controller
