#include "operator/planner/reservations.h"

#include <algorithm>
#include <utility>

#include "operator/planner/on_and_off.h"

namespace pliant::planner {

Reservations::Reservations(const Model& model, const Policy& policy, Assignment& assignment)
    : model_(model),
      policy_(policy),
      assignment_(assignment),
      of_limit_(model.queues.size()),
      node_is_marked_(model.nodes.size()),
      fit_is_marked_(model.fits.size()),
      fit_is_behind_(model.fits.size()) {}

std::int64_t Reservations::Hold(JobIndex job, std::int64_t max_queue_gpus) {
  const Job& of = model_.jobs[job];
  const std::int64_t gpus = of.needs().gpus;
  LearnerCount held = 0;
  while (assignment_.LearnersOf(job) < of.minimum &&
         assignment_.GpusOfQueue(of.queue) + gpus <= max_queue_gpus && assignment_.Add(job)) {
    ++held;
  }
  if (held > 0) held_.push_back({job, held});
  return assignment_.LearnersOf(job) * gpus;
}

std::int64_t Reservations::HoldAndClose(JobIndex job, std::int64_t max_queue_gpus) {
  const std::int64_t has = Hold(job, max_queue_gpus);
  const Job& of = model_.jobs[job];
  if (assignment_.LearnersOf(job) >= of.minimum) return has;
  const std::vector<NodeIndex>& nodes = assignment_.FitOf(job).nodes;
  const auto most_free = std::ranges::max_element(
      nodes, {}, [this](NodeIndex node) { return assignment_.FreeGpusOn(node); });
  if (most_free == nodes.end()) return has;
  const std::int64_t of_queue = assignment_.GpusOfQueue(of.queue);
  if (of_queue + assignment_.FreeGpusOn(*most_free) <= max_queue_gpus) {
    assignment_.Close(*most_free);
  }
  return has;
}

void Reservations::HoldLimit(JobIndex job) {
  const Job& of = model_.jobs[job];
  std::int64_t& held = of_limit_[of.queue];
  const std::int64_t left =
      model_.queues[of.queue].limit_gpus() - assignment_.GpusOfQueue(of.queue) - held;
  held += std::min(model_.GpusOf(job, of.minimum), std::max<std::int64_t>(left, 0));
}

void Reservations::Forget(JobIndex job) {
  std::erase_if(held_, [job](const Held& held) { return held.job == job; });
}

std::vector<std::int64_t> Reservations::HeldByQueue() const {
  std::vector<std::int64_t> gpus(model_.queues.size());
  for (const Held& held : held_) {
    gpus[model_.jobs[held.job].queue] += model_.GpusOf(held.job, held.learners);
  }
  return gpus;
}

void Reservations::ReleaseAll() {
  std::ranges::fill(of_limit_, 0);
  assignment_.OpenAll();
  for (const Held& held : std::exchange(held_, {})) assignment_.Remove(held.job, held.learners);
}

bool Reservations::KeepsIdleGpus(JobIndex job, bool at_once) {
  const JobView& view = *model_.jobs[job].view;
  const WallTime now = model_.snapshot->now;
  WallTime begin = view.waiting.since.value_or(view.submitted);
  if (now < begin) return false;
  if (!at_once) begin += policy_.reserve_after;
  return IsOnEverLonger(begin, policy_.reserve_for, policy_.reserve_after, now, again_at_);
}

void Reservations::MarkNodesOf(JobIndex job) {
  const int fit = assignment_.FitIndexOf(job);
  if (std::exchange(fit_is_marked_[fit], true)) return;
  for (const NodeIndex node : model_.fits[fit].nodes) node_is_marked_[node] = true;
  std::ranges::fill(fit_is_behind_, std::nullopt);
}

bool Reservations::IsBehind(JobIndex job) {
  const int fit = assignment_.FitIndexOf(job);
  if (!fit_is_behind_[fit]) {
    fit_is_behind_[fit] = std::ranges::any_of(
        model_.fits[fit].nodes, [this](NodeIndex node) { return node_is_marked_[node]; });
  }
  return *fit_is_behind_[fit];
}

void Reservations::ForgetMarks() {
  std::ranges::fill(node_is_marked_, false);
  std::ranges::fill(fit_is_marked_, false);
  std::ranges::fill(fit_is_behind_, std::nullopt);
}

}  // namespace pliant::planner
