#include "operator/planner/gpu_kinds.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>

#include "operator/planner/feasibility.h"

namespace pliant::planner {
namespace {

// Learners that do not leave, members first.
std::vector<const LearnerView*> LearnersOf(const Job& job) {
  std::vector<const LearnerView*> learners;
  for (const LearnerView& learner : job.view->learners) {
    if (learner.state != LearnerState::kLeaving) learners.push_back(&learner);
  }
  std::ranges::sort(learners, {}, [](const LearnerView* learner) {
    return std::tuple(!learner->member, std::string_view(learner->name));
  });
  return learners;
}

// The kind of the GPUs that its learners hold, those of members first; or, `gated`, of those that
// are planned for them. nullopt: it has no such learner.
std::optional<GpuKind> KindOfLearners(const Model& model, const Job& job, bool gated) {
  for (const LearnerView* learner : LearnersOf(job)) {
    const Node& node = model.nodes[model.NodeNamed(learner->node)];
    const bool is_gated = learner->state == LearnerState::kGated;
    if (is_gated == gated && node.view != nullptr) return node.gpus;
  }
  return std::nullopt;
}

std::int64_t SlotsIn(Resources room, std::int64_t taken_gpus, const Resources& needs) {
  room.gpus = std::max<std::int64_t>(room.gpus - taken_gpus, 0);
  return TimesIn(room, needs);
}

}  // namespace

std::optional<std::string_view> FixedProduct(const JobView& job) {
  const bool stays = job.training.reproducibility == Reproducibility::kBitwise &&
                     !job.training.gpu_product.empty();
  return stays ? std::optional<std::string_view>(job.training.gpu_product) : std::nullopt;
}

GpuKind GpusOn(const NodeView& node) {
  const auto label = [&](const char* name) {
    const auto found = node.labels.find(name);
    return found == node.labels.end() ? std::string_view() : std::string_view(found->second);
  };
  return {.product = label(kGpuProductLabel), .driver = label(kGpuDriverLabel)};
}

GpuKinds::GpuKinds(const Model& model, FitOf fit_of) : model_(model), fit_of_(std::move(fit_of)) {
  for (const Node& node : model.nodes) {
    if (node.view != nullptr) kinds_.emplace(node.gpus, 0);
  }
  used_gpus_.resize(model.nodes.size());
  needed_gpus_.resize(model.nodes.size());
  for (const Job& job : model.jobs) {
    for (const LearnerView& learner : job.view->learners) {
      used_gpus_[model.NodeNamed(learner.node)] += job.needs().gpus;
    }
    if (!job.active) continue;
    for (const LearnerView* learner : LearnersOf(job) | std::views::take(job.minimum)) {
      needed_gpus_[model.NodeNamed(learner->node)] += job.needs().gpus;
    }
  }
}

const GpuKinds::Room& GpuKinds::RoomOf(int fit) {
  const auto [at, is_new] = rooms_.try_emplace(fit);
  if (!is_new) return at->second;
  const Fit& of = model_.fits[fit];
  at->second.slots = of.slots;
  for (const NodeIndex node : of.nodes) {
    const Resources& room = model_.nodes[node].room;
    at->second.free += SlotsIn(room, used_gpus_[node], of.needs);
    at->second.attainable += SlotsIn(room, needed_gpus_[node], of.needs);
  }
  return at->second;
}

// In order of preference: the minimum can start at once; it fits if others shrink; most of the job
// can start at once; what is free is used best, or else the kind with most GPUs. Where the minimum
// never fits does not count, unless it fits nowhere.
std::vector<GpuKind> GpuKinds::Choose(const Job& job, std::optional<std::string_view> product) {
  struct Offer {
    std::tuple<bool, bool, bool, std::int64_t, std::int64_t> score;
    GpuKind kind;
  };
  const std::int64_t gpus = job.needs().gpus;
  std::vector<Offer> offers;
  for (const auto& [kind, promised_gpus] : kinds_) {
    if (product && kind.product != *product) continue;
    const Room& room = RoomOf(fit_of_(job, kind));
    if (room.slots == 0) continue;
    const std::int64_t promised = (promised_gpus + gpus - 1) / gpus;
    const std::int64_t free = room.free - promised;
    const bool is_free = free >= job.minimum;
    offers.push_back(
        {{room.slots >= job.minimum, is_free, room.attainable - promised >= job.minimum,
          is_free ? std::min<std::int64_t>(free, job.demand) : 0,
          is_free ? -room.slots : room.slots},
         kind});
  }
  std::ranges::stable_sort(offers, std::greater(), &Offer::score);
  const auto is_too_small = [](const Offer& offer) { return !std::get<0>(offer.score); };
  const auto too_small = std::ranges::find_if(offers, is_too_small);
  if (too_small != offers.end()) {
    offers.erase(std::max(too_small, offers.begin() + 1), offers.end());
  }
  std::vector<GpuKind> kinds;
  std::ranges::transform(offers, std::back_inserter(kinds), &Offer::kind);
  if (!kinds.empty()) kinds_[kinds.front()] += job.minimum * gpus;
  return kinds;
}

std::vector<GpuKind> GpuKinds::ChoicesFor(const Job& job) {
  if (job.view->training.reproducibility != Reproducibility::kBitwise) return {};
  const auto fixed = FixedProduct(*job.view);
  const auto may_use = [&](const std::optional<GpuKind>& kind) {
    return kind && (!fixed || kind->product == *fixed);
  };
  const auto held = KindOfLearners(model_, job, /*gated=*/false);
  if (may_use(held)) return {*held};
  const auto planned = KindOfLearners(model_, job, /*gated=*/true);
  if (may_use(planned) && RoomOf(fit_of_(job, *planned)).slots >= job.minimum) return {*planned};
  std::vector<GpuKind> kinds = Choose(job, fixed);
  if (!kinds.empty() || !fixed) return kinds;
  // Nodes of its product have no room even if they are empty, or there are none.
  const auto any = kinds_.lower_bound({.product = *fixed, .driver = ""});
  if (any != kinds_.end() && any->first.product == *fixed) return {any->first};
  return {{.product = *fixed, .driver = ""}};
}

}  // namespace pliant::planner
