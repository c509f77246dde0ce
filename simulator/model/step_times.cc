#include "simulator/model/step_times.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace pliant::simulator {
namespace {

std::tuple<int, int, int> KeyOf(const MeasuredSize& size) {
  return {size.nodes, size.learners, size.local};
}

StepTime Between(double low, const StepTime& at_low, double high, const StepTime& at_high,
                 double x) {
  const auto line = [&](double y_low, double y_high) {
    return (y_high - y_low) / (high - low) * (x - low) + y_low;
  };
  return {.step = line(at_low.step, at_high.step), .sync = line(at_low.sync, at_high.sync)};
}

// Linear between the two items around `x`, of which `key` gives the position and `value` the time.
template <typename Item, typename Key, typename Value>
StepTime Interpolate(const std::vector<Item>& items, int x, Key key, Value value) {
  if (x <= key(items.front())) return value(items.front());
  if (x >= key(items.back())) return value(items.back());
  const auto high = std::ranges::lower_bound(items, x, {}, key);
  if (key(*high) == x) return value(*high);
  const auto low = high - 1;
  return Between(key(*low), value(*low), key(*high), value(*high), x);
}

StepTime AtLocal(const std::vector<LocalPoint>& points, int local) {
  return Interpolate(
      points, local, [](const LocalPoint& point) { return point.local; },
      [](const LocalPoint& point) { return point.time; });
}

std::vector<MeasuredSize> SizesOf(const std::vector<MeasuredPlacement>& placements) {
  std::vector<MeasuredSize> sizes;
  for (const MeasuredPlacement& each : placements) {
    for (const LocalPoint& point : each.points) {
      sizes.push_back({.nodes = static_cast<int>(each.placement.size()),
                       .learners = Learners(each.placement),
                       .local = point.local,
                       .time = point.time});
    }
  }
  return sizes;
}

StepTime Mean(std::span<const MeasuredSize> sizes) {
  StepTime sum;
  for (const MeasuredSize& size : sizes) {
    sum.step += size.time.step;
    sum.sync += size.time.sync;
  }
  const auto count = static_cast<double>(sizes.size());
  return {.step = sum.step / count, .sync = sum.sync / count};
}

}  // namespace

StepTimes::StepTimes(std::vector<MeasuredPlacement> placements,
                     std::vector<MeasuredSize> scalability, std::vector<MeasuredSize> extra)
    : placements_(std::move(placements)), extra_(std::move(extra)) {
  CHECK(!placements_.empty(), "readers refuse empty tables");
  std::ranges::sort(placements_, {}, &MeasuredPlacement::placement);
  std::ranges::stable_sort(extra_, {}, KeyOf);
  std::vector<MeasuredSize> sizes = SizesOf(placements_);
  sizes.insert(sizes.end(), scalability.begin(), scalability.end());
  AddMeans(std::move(sizes));
}

void StepTimes::AddMeans(std::vector<MeasuredSize> sizes) {
  std::ranges::stable_sort(sizes, {}, KeyOf);
  for (auto first = sizes.begin(); first != sizes.end();) {
    const auto end = std::ranges::find_if(
        first, sizes.end(), [&](const MeasuredSize& size) { return KeyOf(size) != KeyOf(*first); });
    if (grid_.empty() || grid_.back().nodes != first->nodes) {
      grid_.push_back({.nodes = first->nodes, .sizes = {}});
    }
    std::vector<OfLearners>& of_nodes = grid_.back().sizes;
    if (of_nodes.empty() || of_nodes.back().learners != first->learners) {
      of_nodes.push_back({.learners = first->learners, .points = {}});
    }
    of_nodes.back().points.push_back({.local = first->local, .time = Mean({first, end})});
    first = end;
  }
}

StepTime StepTimes::At(const Placement& placement, int local) const {
  CHECK(!placement.empty(), "a job that runs has learners");
  if (const MeasuredPlacement* found = Find(placement)) return AtLocal(found->points, local);
  const int nodes = static_cast<int>(placement.size());
  const int learners = Learners(placement);
  if (const MeasuredSize* found = FindExtra(nodes, learners, local)) return found->time;
  const auto at_learners = [&](const OfNodes& of_nodes) {
    return Interpolate(
        of_nodes.sizes, learners, [](const OfLearners& size) { return size.learners; },
        [&](const OfLearners& size) { return AtLocal(size.points, local); });
  };
  return Interpolate(
      grid_, nodes, [](const OfNodes& of_nodes) { return of_nodes.nodes; }, at_learners);
}

const MeasuredPlacement* StepTimes::Find(const Placement& placement) const {
  const Placement least = LeastRotation(placement);
  const auto found =
      std::ranges::lower_bound(placements_, least, {}, &MeasuredPlacement::placement);
  return found != placements_.end() && found->placement == least ? &*found : nullptr;
}

const MeasuredSize* StepTimes::FindExtra(int nodes, int learners, int local) const {
  const std::tuple key(nodes, learners, local);
  const auto found = std::ranges::lower_bound(extra_, key, {}, KeyOf);
  return found != extra_.end() && KeyOf(*found) == key ? &*found : nullptr;
}

}  // namespace pliant::simulator
