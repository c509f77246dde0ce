#pragma once

#include <optional>

#include "operator/planner/fit_memory.h"
#include "operator/planner/model.h"
#include "operator/planner/plan.h"
#include "operator/planner/sharing.h"

// Prevents that jobs are resized for ever in a cluster that does not change.
namespace pliant::planner {

// A sharing is made from this, for each pool.
struct SharingInput {
  const Model& model;
  const PoolScope& scope;
  const Policy& policy;
  FitMemory& memory;
};

// If jobs differ in their needs, the search for nodes may miss a place, and which one depends on
// where learners are. Then the plans that follow may alternate between some sizes. nullopt: they do
// not, within the next few plans, lead back to the present sizes. Otherwise the sharing with the
// present sizes and nodes, which are as good as those that `fair` would try.
std::optional<Sharing> PresentIfPlansAlternate(const SharingInput& input, const Sharing& fair);

}  // namespace pliant::planner
