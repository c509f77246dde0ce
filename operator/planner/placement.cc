#include "operator/planner/placement.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace pliant::planner {
namespace {

// The node for a job that needs `wanted` more learners.
std::optional<NodeIndex> BestNode(const Model& model, const Assignment& placed, JobIndex job,
                                  LearnerCount wanted) {
  std::optional<NodeIndex> best;
  std::tuple<bool, bool, bool, std::int64_t, std::int64_t> best_score;
  for (const NodeIndex node : model.fits[model.jobs[job].fit].nodes) {
    const std::int64_t slots = placed.SlotsOn(job, node);
    if (slots == 0) continue;
    const std::int64_t free = placed.FreeSlotsOn(job, node);
    const bool has_neighbours = std::ranges::contains(placed.ClaimsOf(job), node, &Claim::node);
    // In order of preference: all of them can start at once; all of them fit; the job already has
    // learners there; then the node that they fill best or, if none takes them all, the one that
    // takes most.
    const bool all_fit = slots >= wanted;
    const auto score =
        std::tuple(free >= wanted, all_fit, has_neighbours, all_fit ? -slots : slots, free);
    if (best && score <= best_score) continue;
    best = node;
    best_score = score;
  }
  return best;
}

bool PlaceNew(const Model& model, Assignment& placed, JobIndex job, LearnerCount wanted) {
  while (wanted > 0) {
    const std::optional<NodeIndex> node = BestNode(model, placed, job, wanted);
    if (!node) break;
    for (; wanted > 0 && placed.AddOn(job, *node); --wanted) {
    }
  }
  return wanted == 0 || placed.Add(job, wanted);
}

}  // namespace

Assignment Place(const Model& model, const Sharing& sharing) {
  Assignment placed(model);
  const auto missing = [&](JobIndex job) {
    return sharing.shares[job].learners - placed.LearnersOf(job);
  };
  // 1. Learners that hold their GPUs, then gated ones.
  for (const bool gated : {false, true}) {
    for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
      for (const LearnerView* learner : model.jobs[job].held) {
        if (missing(job) <= 0) break;
        if ((learner->state == LearnerState::kGated) == gated) {
          placed.AddOn(job, model.NodeNamed(learner->node));
        }
      }
    }
  }
  // 2. New learners, the largest groups first: they are the hardest to keep together.
  std::vector<std::pair<LearnerCount, JobIndex>> groups;
  for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
    if (missing(job) > 0) groups.emplace_back(-missing(job), job);
  }
  std::ranges::sort(groups);
  for (const auto& [size, job] : groups) {
    // If needs differ in CPU or memory, a tighter placement may not exist; the sharing's own is
    // always valid.
    if (!PlaceNew(model, placed, job, -size)) return sharing.assignment;
  }
  return placed;
}

}  // namespace pliant::planner
