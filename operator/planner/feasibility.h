#pragma once

#include <cstdint>
#include <string_view>

#include "base/bounded.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::planner {

// Why a node cannot run a pod even if it had no other learner, in the order in which they are
// checked.
enum class Obstacle : std::uint8_t {
  kNone,
  kNotReady,
  kCordoned,
  kTaint,
  kLabels,
  kGpus,
  kCpu,
  kMemory,
  kProduct,  // not the GPU product of the job
  kDriver,   // of that product, but with another driver than its learners have
};
// describes nodes: "not ready", "with too little memory"
std::string_view ToString(Obstacle obstacle);

// Whether the node takes new pods at all.
inline bool MayStart(const NodeView& node) { return node.ready && node.schedulable; }

Obstacle ObstacleOn(const NodeView& node, const PodNeeds& needs);
// Checks labels and taints only: kTaint, kLabels or kNone.
Obstacle ObstacleInLooks(const NodeView& node, const PodNeeds& needs);
// The same as ObstacleOn; `looks` is the result of ObstacleInLooks.
Obstacle ObstacleOn(const NodeView& node, const PodNeeds& needs, Obstacle looks);

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
bool Holds(const NodeRequirement& requirement, const std::map<std::string, std::string>& labels);

inline bool Fits(const Resources& needs, const Resources& room) {
  return needs.gpus <= room.gpus && needs.cpu_millis <= room.cpu_millis &&
         needs.memory_bytes <= room.memory_bytes;
}

// How many times `needs` fits into `room`. `needs` has at least one GPU.
std::int64_t TimesIn(const Resources& room, const Resources& needs);

// A quantity that is too large reads as the largest number, and users may request several such:
// sums and differences saturate.
inline Resources& operator+=(Resources& sum, const Resources& more) {
  sum.gpus = BoundedSum(sum.gpus, more.gpus);
  sum.cpu_millis = BoundedSum(sum.cpu_millis, more.cpu_millis);
  sum.memory_bytes = BoundedSum(sum.memory_bytes, more.memory_bytes);
  return sum;
}
inline Resources& operator-=(Resources& rest, const Resources& less) {
  rest.gpus = BoundedDifference(rest.gpus, less.gpus);
  rest.cpu_millis = BoundedDifference(rest.cpu_millis, less.cpu_millis);
  rest.memory_bytes = BoundedDifference(rest.memory_bytes, less.memory_bytes);
  return rest;
}
inline Resources operator+(Resources left, const Resources& right) { return left += right; }
inline Resources operator-(Resources left, const Resources& right) { return left -= right; }

}  // namespace pliant::planner
