#include "operator/planner/alternation.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "operator/planner/learner_changes.h"
#include "operator/planner/placement.h"

namespace pliant::planner {
namespace {

// Plans alternate between two sizes, or rarely three.
constexpr int kPlansAhead = 4;

using Sizes = std::vector<LearnerCount>;  // by job

Sizes PresentSizes(const Model& model) {
  Sizes sizes;
  for (const Job& job : model.jobs) sizes.push_back(static_cast<LearnerCount>(job.held.size()));
  return sizes;
}

Sizes SizesOf(const Sharing& sharing) {
  Sizes sizes;
  for (const Share& share : sharing.shares) sizes.push_back(share.learners);
  return sizes;
}

// With equal needs the search misses no place.
bool NeedsDiffer(const Model& model) {
  const Job* first = nullptr;
  for (const Job& job : model.jobs) {
    if (!job.active) continue;
    if (first == nullptr) first = &job;
    if (job.needs() != first->needs()) return true;
  }
  return false;
}

// Plans that alternate take learners from a job again and again.
bool TakesLearners(const Model& model, const Sharing& sharing) {
  return std::ranges::any_of(std::views::zip(model.jobs, sharing.shares), [](const auto& pair) {
    const auto& [job, share] = pair;
    return share.learners < std::ssize(job.held);
  });
}

// Other pods hold nothing that could be kept.
bool GivesToPods(const Model& model, const Sharing& sharing) {
  return std::ranges::any_of(std::views::zip(model.jobs, sharing.shares), [](const auto& pair) {
    const auto& [job, share] = pair;
    return job.is_pod && share.learners > 0;
  });
}

// The job after the decision was carried out: all learners that it is to have hold their GPUs.
void CarryOut(const Decision& decision, WallTime now, int plan, JobView& job) {
  std::erase_if(job.learners, [&](const LearnerView& learner) {
    return std::ranges::contains(decision.drop, learner.name);
  });
  for (LearnerView& learner : job.learners) {
    if (learner.state == LearnerState::kGated) learner.state = LearnerState::kStarting;
  }
  for (const NewLearner& learner : decision.create) {
    // After all others in the order of names.
    job.learners.push_back({.name = Format("~{}-{}", plan, job.learners.size()),
                            .node = learner.node,
                            .state = LearnerState::kStarting,
                            .created = now,
                            .since = now});
  }
  job.share.desired = decision.to;
  job.cap = decision.cap;
}

// The snapshot after the sharing was carried out, and nothing else happened.
ClusterSnapshot After(const Model& model, const Sharing& sharing, int plan) {
  const Assignment placed = Place(model, sharing);
  ClusterSnapshot next = *model.snapshot;
  for (JobIndex index = 0; index < std::ssize(model.jobs); ++index) {
    const Job& job = model.jobs[index];
    if (job.is_pod) continue;
    Decision decision{.to = placed.LearnersOf(index), .cap = job.cap};
    SortLearners(model, index, placed, decision);
    const auto at = static_cast<std::size_t>(job.view - model.snapshot->jobs.data());
    CarryOut(decision, next.now, plan, next.jobs[at]);
  }
  return next;
}

// All learners where they are; nullopt: there they cannot stay together.
std::optional<Assignment> PresentAssignment(const Model& model, const Sharing& sharing) {
  Assignment assignment(model);
  for (JobIndex index = 0; index < std::ssize(model.jobs); ++index) {
    const Job& job = model.jobs[index];
    if (job.held.empty()) assignment.UseFit(index, sharing.assignment.FitIndexOf(index));
  }
  for (const bool gated : {false, true}) {
    for (JobIndex index = 0; index < std::ssize(model.jobs); ++index) {
      for (const HeldAt& held : model.jobs[index].held_at) {
        const LearnerCount learners = gated ? held.learners - held.started : held.started;
        for (LearnerCount count = 0; count < learners; ++count) {
          if (!assignment.AddOn(index, held.node)) return std::nullopt;
        }
      }
    }
  }
  return assignment;
}

}  // namespace

std::optional<Sharing> PresentIfPlansAlternate(const SharingInput& input, const Sharing& fair) {
  const Model& model = input.model;
  const bool may_alternate = fair.assignment.missed_a_place() && TakesLearners(model, fair) &&
                             NeedsDiffer(model) && !GivesToPods(model, fair);
  if (!may_alternate) return std::nullopt;
  const Sizes present = PresentSizes(model);
  Sizes sizes = SizesOf(fair);
  ClusterSnapshot snapshot = After(model, fair, 0);
  for (int plan = 1; plan <= kPlansAhead; ++plan) {
    const Model next = MakeModel(snapshot, input.scope, input.policy, input.memory);
    const Sharing sharing = ShareOut(next, input.policy, Protection::kNobody);
    Sizes next_sizes = SizesOf(sharing);
    if (next_sizes == sizes) return std::nullopt;
    if (next_sizes == present) {
      std::optional<Assignment> assignment = PresentAssignment(model, fair);
      if (!assignment) return std::nullopt;
      return Sharing{.shares = sharing.shares,
                     .queues = sharing.queues,
                     .assignment = *std::move(assignment),
                     .again_at = fair.again_at};
    }
    sizes = std::move(next_sizes);
    // `next` points into `snapshot`.
    ClusterSnapshot after = After(next, sharing, plan);
    snapshot = std::move(after);
  }
  return std::nullopt;
}

}  // namespace pliant::planner
