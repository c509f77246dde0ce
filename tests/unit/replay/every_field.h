#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "operator/replay/debug_snapshot.h"
#include "operator/replay/enumerators.h"

// Visits each field of a snapshot and of a plan. A struct that gets a field no longer compiles
// here: add the field, and to operator/replay/describe.h.
namespace pliant::replay {

inline auto FieldsOf(planner::Resources& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::Taint& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::PoolView& v) {
  auto& [a, b, c, d, e, f] = v;
  return std::tie(a, b, c, d, e, f);
}
inline auto FieldsOf(planner::ForeignUsers& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
// Without the version.
inline auto FieldsOf(planner::NodeView& v) {
  auto& [a, b, c, d, e, f, g, h, i, version] = v;
  (void)version;
  return std::tie(a, b, c, d, e, f, g, h, i);
}
inline auto FieldsOf(planner::Toleration& v) {
  auto& [a, b, c, d] = v;
  return std::tie(a, b, c, d);
}
inline auto FieldsOf(planner::NodeRequirement& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::PodNeeds& v) {
  auto& [a, b, c, d] = v;
  return std::tie(a, b, c, d);
}
inline auto FieldsOf(planner::LearnerView& v) {
  auto& [a, b, c, d, e, f, g, h] = v;
  return std::tie(a, b, c, d, e, f, g, h);
}
inline auto FieldsOf(planner::DemandCap& v) {
  auto& [a, b, c, d] = v;
  return std::tie(a, b, c, d);
}
inline auto FieldsOf(planner::AvoidedNode& v) {
  auto& [a, b] = v;
  return std::tie(a, b);
}
inline auto FieldsOf(planner::QueueView& v) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l] = v;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
}
inline auto FieldsOf(planner::JobTraining& v) {
  auto& [a, b, c, d, e, f, g, h] = v;
  return std::tie(a, b, c, d, e, f, g, h);
}
inline auto FieldsOf(planner::JobWaiting& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::JobShare& v) {
  auto& [a, b, c, d, e, f] = v;
  return std::tie(a, b, c, d, e, f);
}
inline auto FieldsOf(planner::JobView& v) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, w, x, y, z] = v;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, w, x, y, z);
}
inline auto FieldsOf(planner::GpuBudget& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::PendingPod& v) {
  auto& [a, b, c, d, e, f] = v;
  return std::tie(a, b, c, d, e, f);
}
inline auto FieldsOf(planner::ClusterSnapshot& v) {
  auto& [a, b, c, d, e, f, g] = v;
  return std::tie(a, b, c, d, e, f, g);
}
inline auto FieldsOf(planner::Policy& v) {
  auto& [a, b, c, d, e, f, g, h, i] = v;
  return std::tie(a, b, c, d, e, f, g, h, i);
}
inline auto FieldsOf(planner::Reason& v) {
  auto& [a, b] = v;
  return std::tie(a, b);
}
inline auto FieldsOf(planner::NewLearner& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::NodeRequest& v) {
  auto& [a, b] = v;
  return std::tie(a, b);
}
inline auto FieldsOf(planner::Decision& v) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = v;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
}
inline auto FieldsOf(planner::QueueShare& v) {
  auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k);
}
inline auto FieldsOf(planner::PoolShare& v) {
  auto& [a, b, c, d, e, f, g, h] = v;
  return std::tie(a, b, c, d, e, f, g, h);
}
inline auto FieldsOf(planner::GateOpening& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}
inline auto FieldsOf(planner::Plan& v) {
  auto& [a, b, c, d, e, f] = v;
  return std::tie(a, b, c, d, e, f);
}
inline auto FieldsOf(DebugSnapshot& v) {
  auto& [a, b, c] = v;
  return std::tie(a, b, c);
}

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
struct DurationOfTime {
  using Type = T;
};
template <>
struct DurationOfTime<planner::WallTime> {
  using Type = planner::WallTime::duration;
};
template <typename T>
using DurationOf = DurationOfTime<T>::Type;

// Calls `visit` for each text, number, flag, enumerator, time and map. `fill`: lists and optionals
// get items first.
template <typename T>
void ForEachLeaf(T& value, bool fill, const auto& visit) {
  if constexpr (std::is_same_v<T, planner::JobKey>) {
    visit(value.name_space);
    visit(value.name);
    value.uid = StandInUid(value);
  } else if constexpr (std::is_same_v<T, planner::SharedNeeds>) {
    planner::PodNeeds needs = value.OrNone();
    ForEachLeaf(needs, fill, visit);
    value.needs = std::make_shared<const planner::PodNeeds>(std::move(needs));
  } else if constexpr (kIsList<T>) {
    if (fill) value.resize(2);
    for (auto& item : value) ForEachLeaf(item, fill, visit);
  } else if constexpr (kIsOptional<T>) {
    if (fill) value.emplace();
    if (value) ForEachLeaf(*value, fill, visit);
  } else if constexpr (requires { FieldsOf(value); }) {
    std::apply([&](auto&... fields) { (ForEachLeaf(fields, fill, visit), ...); }, FieldsOf(value));
  } else {
    visit(value);
  }
}

// Gives a leaf another value, which is near enough to stay within its bounds.
template <typename T>
void Change(T& leaf) {
  if constexpr (std::is_same_v<T, std::string>) {
    leaf += "x";
  } else if constexpr (std::is_same_v<T, bool>) {
    leaf = !leaf;
  } else if constexpr (std::is_enum_v<T>) {
    leaf = leaf == kLast<T> ? T{} : static_cast<T>(static_cast<int>(leaf) + 1);
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    leaf["added"] = "x";
  } else if constexpr (std::is_integral_v<T>) {
    ++leaf;
  } else {
    leaf += DurationOf<T>{1};
  }
}

// A snapshot and a plan, all of whose fields have values of their own.
inline DebugSnapshot EveryField() {
  DebugSnapshot full;
  int count = 0;
  ForEachLeaf(full, /*fill=*/true, [&count]<typename T>(T& leaf) {
    ++count;
    if constexpr (std::is_same_v<T, std::string>) {
      leaf = "text-" + std::to_string(count);
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      leaf = {{"key-" + std::to_string(count), "value"}};
    } else if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
      Change(leaf);
    } else if constexpr (std::is_integral_v<T>) {
      leaf = 2 + count % 5;
    } else {
      leaf = T(DurationOf<T>{1000 + count});
    }
  });
  for (planner::JobView& job : full.snapshot.jobs) job.max_learners = 2 * job.min_learners;
  return full;
}

}  // namespace pliant::replay
