#include "operator/planner/assignment.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "operator/planner/feasibility.h"

namespace pliant::planner {

Assignment::Assignment(const Model& model)
    : model_(model),
      uses_(model.nodes.size()),
      claims_(model.jobs.size()),
      total_(model.jobs.size()),
      fit_(model.jobs.size()),
      queue_gpus_(model.queues.size()),
      closed_(model.nodes.size()),
      cache_(model.fits.size()) {
  for (const Node& node : model.nodes) {
    free_gpus_ += node.room.gpus;
    overcommitted_gpus_ += std::max<std::int64_t>(node.held_gpus - node.room.gpus, 0);
  }
  for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
    fit_[job] = model.jobs[job].fit;
  }
  for (const GpuBudget& budget : model.budgets) budget_left_.push_back(budget.gpus);
}

void Assignment::UseFit(JobIndex job, int fit) {
  CHECK(total_[job] == 0, "learners of one job are on GPUs of one product");
  fit_[job] = fit;
}

bool Assignment::IsInBudget(JobIndex job, LearnerCount learners) const {
  const Job& of = model_.jobs[job];
  return !of.budget || learners * of.needs().gpus <= budget_left_[*of.budget];
}

LearnerCount Assignment::LearnersOn(JobIndex job, NodeIndex node) const {
  const auto at = std::ranges::find(claims_[job], node, &Claim::node);
  return at == claims_[job].end() ? 0 : at->learners;
}

// Whether the job's next learner on this node is one that already holds its GPUs there.
bool Assignment::WouldStand(JobIndex job, NodeIndex node) const {
  const Job& of = model_.jobs[job];
  return !of.held_at.empty() && LearnersOn(job, node) < of.StartedAt(node);
}

bool Assignment::FitsOn(JobIndex job, NodeIndex node) const {
  if (closed_[node]) return false;
  const NodeUse& use = uses_[node];
  // A learner that is already there stays, even if the node takes no new ones. But once a new
  // learner was placed there, all others must fit too.
  if (use.fresh_gpus == 0 && WouldStand(job, node)) return true;
  return Fits(use.taken + model_.jobs[job].needs(), model_.nodes[node].room);
}

bool Assignment::FitsInsteadOf(JobIndex mover, JobIndex leaver, NodeIndex node) const {
  const NodeUse& use = uses_[node];
  const Job& of_leaver = model_.jobs[leaver];
  const bool leaver_stands = LearnersOn(leaver, node) <= of_leaver.StartedAt(node);
  const std::int64_t fresh = use.fresh_gpus - (leaver_stands ? 0 : of_leaver.needs().gpus);
  if (fresh == 0 && WouldStand(mover, node)) return true;
  return Fits(use.taken - of_leaver.needs() + model_.jobs[mover].needs(), model_.nodes[node].room);
}

bool Assignment::LacksHeld(JobIndex job) const {
  return std::ranges::any_of(model_.jobs[job].held_at, [&](const HeldAt& held) {
    return LearnersOn(job, held.node) < held.learners;
  });
}

std::int64_t Assignment::SlotsOn(JobIndex job, NodeIndex node) const {
  const Resources& needs = model_.jobs[job].needs();
  if (FreeGpusOn(node) < needs.gpus) return 0;  // most nodes are full
  return TimesIn(model_.nodes[node].room - uses_[node].taken, needs);
}

std::int64_t Assignment::FreeSlotsOn(JobIndex job, NodeIndex node) const {
  const Node& of = model_.nodes[node];
  const std::int64_t gpus = of.room.gpus - of.occupied_gpus - uses_[node].fresh_gpus;
  const std::int64_t times = std::max<std::int64_t>(gpus, 0) / model_.jobs[job].needs().gpus;
  return std::min(times, SlotsOn(job, node));
}

void Assignment::Put(JobIndex job, NodeIndex node) {
  journal_.push_back({job, node, true});
  NodeUse& use = uses_[node];
  const Resources& needs = model_.jobs[job].needs();
  free_gpus_ -=
      std::clamp(model_.nodes[node].room.gpus - use.taken.gpus, std::int64_t{0}, needs.gpus);
  if (!WouldStand(job, node)) use.fresh_gpus += needs.gpus;
  use.taken += needs;
  auto at = std::ranges::find(claims_[job], node, &Claim::node);
  if (at == claims_[job].end()) {
    at = claims_[job].insert(at, Claim{.node = node});
    use.jobs.push_back(job);
  }
  ++at->learners;
  ++total_[job];
  queue_gpus_[model_.jobs[job].queue] += needs.gpus;
  if (const auto& budget = model_.jobs[job].budget) budget_left_[*budget] -= needs.gpus;
}

void Assignment::Take(JobIndex job, NodeIndex node) {
  journal_.push_back({job, node, false});
  NodeUse& use = uses_[node];
  const Resources& needs = model_.jobs[job].needs();
  const auto at = std::ranges::find(claims_[job], node, &Claim::node);
  CHECK(at != claims_[job].end(), "only what was put is taken");
  --at->learners;
  --total_[job];
  queue_gpus_[model_.jobs[job].queue] -= needs.gpus;
  if (at->learners == 0) {
    claims_[job].erase(at);
    use.jobs.erase(std::ranges::find(use.jobs, job));
  }
  if (const auto& budget = model_.jobs[job].budget) budget_left_[*budget] += needs.gpus;
  use.taken -= needs;
  if (!WouldStand(job, node)) use.fresh_gpus -= needs.gpus;
  free_gpus_ +=
      std::clamp(model_.nodes[node].room.gpus - use.taken.gpus, std::int64_t{0}, needs.gpus);
}

bool Assignment::AddOn(JobIndex job, NodeIndex node) {
  if (!IsInBudget(job, 1) || !FitsOn(job, node)) return false;
  Put(job, node);
  return true;
}

bool Assignment::AddWhereHeld(JobIndex job) {
  const Job& of = model_.jobs[job];
  for (const HeldAt& held : of.held_at) {
    if (LearnersOn(job, held.node) < held.learners && AddOn(job, held.node)) return true;
  }
  return false;
}

bool Assignment::AddWithoutMoving(JobIndex job) { return AddWhereHeld(job) || AddAnywhere(job); }

bool Assignment::AddAnywhere(JobIndex job) {
  const std::vector<NodeIndex>& nodes = FitOf(job).nodes;
  for (std::size_t& cursor = cache_.cursor[fit_[job]]; cursor < nodes.size(); ++cursor) {
    if (AddOn(job, nodes[cursor])) return true;
  }
  return false;
}

bool Assignment::AddOne(JobIndex job) {
  if (FindPlace(job)) return true;
  missed_a_place_ |= free_gpus_ >= model_.jobs[job].needs().gpus;
  return false;
}

bool Assignment::FindPlace(JobIndex job) {
  if (AddWhereHeld(job)) return true;
  // A job that jumps from size to size goes back to its learners first, even if others have to
  // move: with different needs, new nodes may take it a few times and then no more, and the next
  // plan would find it smaller.
  const bool goes_back = model_.jobs[job].speeds && LacksHeld(job);
  if (goes_back && AddByMoving(job, Migration::kNever, Nodes::kHeld)) return true;
  if (AddAnywhere(job)) return true;
  const int fit = fit_[job];
  if (cache_.exhausted[fit] && !LacksHeld(job)) return false;
  if (AddByMoving(job, Migration::kNever) || AddByMoving(job, Migration::kAllowed)) return true;
  if (AddByClearing(job)) return true;
  cache_.exhausted[fit] = true;
  return false;
}

bool Assignment::Add(JobIndex job, LearnerCount learners) {
  if (learners * model_.jobs[job].needs().gpus > free_gpus_ + overcommitted_gpus_) return false;
  if (!IsInBudget(job, learners)) return false;
  if (learners == 1) return AddOne(job);
  return Try([&] {
    for (LearnerCount added = 0; added < learners; ++added) {
      if (!AddOne(job)) return false;
    }
    return true;
  });
}

template <typename Changes>
bool Assignment::Try(const Changes& changes) {
  const Moment before = Now();
  SearchCache cache = cache_;
  if (changes()) return true;
  if (Now() > before) {
    ReturnTo(before);
    cache_ = std::move(cache);
  }
  return false;
}

LearnerCount Assignment::LearnersThatFit(JobIndex job, LearnerCount most) {
  const std::int64_t left = (free_gpus_ + overcommitted_gpus_) / model_.jobs[job].needs().gpus;
  most = static_cast<LearnerCount>(std::min<std::int64_t>(most, left));
  LearnerCount added = 0;
  Try([&] {
    while (added < most && IsInBudget(job, 1) && AddOne(job)) ++added;
    return false;
  });
  return added;
}

void Assignment::Remove(JobIndex job, LearnerCount learners) {
  const Job& of = model_.jobs[job];
  for (; learners > 0; --learners) {
    const auto fresh = std::ranges::find_if(claims_[job], [&](const Claim& claim) {
      return claim.learners > of.StartedAt(claim.node);
    });
    Take(job, fresh != claims_[job].end() ? fresh->node : claims_[job].back().node);
  }
  ResetSearchCache();
}

void Assignment::ReturnTo(Moment moment) {
  for (std::size_t at = journal_.size(); at > moment; --at) {
    const Change change = journal_[at - 1];
    change.was_put ? Take(change.job, change.node) : Put(change.job, change.node);
  }
  journal_.resize(moment);
  ResetSearchCache();
}

void Assignment::OpenAll() {
  if (!std::ranges::contains(closed_, char{true})) return;
  std::ranges::fill(closed_, false);
  ResetSearchCache();
}

void Assignment::ResetSearchCache() {
  std::ranges::fill(cache_.cursor, 0);
  std::ranges::fill(cache_.exhausted, false);
}

// Breadth-first search for the shortest chain of moves: the job takes the place of a second job's
// learner, which takes the place of a third's, ..., and the last one finds room.
bool Assignment::AddByMoving(JobIndex job, Migration migration, Nodes nodes) {
  struct Step {
    NodeIndex node;
    JobIndex mover;  // gets a learner on `node`
    int freed_by;    // the step whose node it leaves; -1: it is the job to add to
  };
  std::vector<Step> steps;
  std::vector<char> seen_node(model_.nodes.size());
  std::vector<char> seen_fit(model_.fits.size());

  const auto consider = [&](NodeIndex node, JobIndex mover, int freed_by) {
    if (seen_node[node]) return;
    seen_node[node] = true;
    steps.push_back({node, mover, freed_by});
  };
  const auto consider_all = [&](JobIndex mover, int freed_by, bool only_held) {
    for (const HeldAt& held : model_.jobs[mover].held_at) {
      if (LearnersOn(mover, held.node) < held.learners) consider(held.node, mover, freed_by);
    }
    const int fit = fit_[mover];
    if (only_held || seen_fit[fit]) return;
    seen_fit[fit] = true;
    for (const NodeIndex node : model_.fits[fit].nodes) consider(node, mover, freed_by);
  };

  consider_all(job, -1, nodes == Nodes::kHeld);
  for (int index = 0; index < std::ssize(steps); ++index) {
    const Step step = steps[index];
    if (FitsOn(step.mover, step.node)) {
      // From the end of the chain to its start: each learner moves to the place that the previous
      // one has left.
      for (int at = index; at != -1; at = steps[at].freed_by) {
        if (steps[at].freed_by != -1) Take(steps[at].mover, steps[steps[at].freed_by].node);
        Put(steps[at].mover, steps[at].node);
      }
      return true;
    }
    for (const JobIndex leaver : uses_[step.node].jobs) {
      if (leaver == step.mover || !FitsInsteadOf(step.mover, leaver, step.node)) continue;
      const Job& of = model_.jobs[leaver];
      const bool stands = LearnersOn(leaver, step.node) <= of.StartedAt(step.node);
      const bool left_alone = of.frozen_size || of.protected_size;
      const bool only_held = stands && (migration == Migration::kNever || left_alone);
      consider_all(leaver, index, only_held);
    }
  }
  return false;
}

// Smaller learners leave one node together, so that a learner of the job fits on it, and find room
// on others. Only the nodes that lack least are tried.
bool Assignment::AddByClearing(JobIndex job) {
  constexpr std::ptrdiff_t kMaxTries = 16;
  const Resources& needs = model_.jobs[job].needs();
  if (needs.gpus < 2) return false;  // AddByMoving has tried to move one
  struct Option {
    std::int64_t lacking_gpus;
    NodeIndex node;
    auto operator<=>(const Option&) const = default;
  };
  std::vector<Option> options;
  for (const NodeIndex node : FitOf(job).nodes) {
    const std::int64_t left = FreeGpusOn(node);
    if (left > 0) options.push_back({needs.gpus - left, node});
  }
  const auto end = options.begin() + std::min<std::ptrdiff_t>(kMaxTries, std::ssize(options));
  std::ranges::partial_sort(options, end);
  return std::any_of(options.begin(), end,
                     [&](const Option& option) { return Clear(option.node, job); });
}

// The job whose learner leaves the node next for one of `job`; absent: none can. The largest ones
// leave first, because then fewer have to move.
std::optional<JobIndex> Assignment::WhoMayLeave(NodeIndex node, JobIndex job) const {
  std::optional<JobIndex> best;
  for (const JobIndex leaver : uses_[node].jobs) {
    const Job& of = model_.jobs[leaver];
    if (leaver == job || of.needs().gpus >= model_.jobs[job].needs().gpus) continue;
    const bool stands = LearnersOn(leaver, node) <= of.StartedAt(node);
    if (stands && (of.frozen_size || of.protected_size)) continue;
    if (!best || of.needs().gpus > model_.jobs[*best].needs().gpus) best = leaver;
  }
  return best;
}

bool Assignment::Clear(NodeIndex node, JobIndex job) {
  const Moment before = Now();
  std::vector<JobIndex> displaced;
  while (!FitsOn(job, node)) {
    const std::optional<JobIndex> leaver = WhoMayLeave(node, job);
    if (!leaver) {
      ReturnTo(before);
      return false;
    }
    Take(*leaver, node);
    displaced.push_back(*leaver);
  }
  Put(job, node);
  ResetSearchCache();
  const bool all_found_room =
      std::ranges::all_of(displaced, [this](JobIndex each) { return AddWithoutMoving(each); });
  if (!all_found_room) ReturnTo(before);
  return all_found_room;
}

}  // namespace pliant::planner
