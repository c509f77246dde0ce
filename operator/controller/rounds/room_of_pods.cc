#include "operator/controller/rounds/room_of_pods.h"

#include <cstdint>

#include "operator/planner/feasibility.h"

namespace pliant::controller {

using planner::operator+=;

std::string RoomTakenOn(const api::Pod& pod) {
  if (pod.ended()) return "";
  if (!pod.node_name.empty()) return pod.node_name;
  return pod.scheduling_gates.empty() ? pod.nominated_node_name : "";
}

std::string RoomClaimedOn(const api::Pod& pod) {
  const bool open = !pod.ended() && pod.scheduling_gates.empty() && !pod.unschedulable;
  const bool pinned_by_controller = pod.of_daemon_set || !pod.meta.owner_uid.empty();
  return open && pinned_by_controller && RoomTakenOn(pod).empty() ? pod.planned_node : "";
}

void UseOfNode::Add(const std::string& name_space, const planner::Resources& taken) {
  sum += taken;
  by_namespace[name_space] += taken;
}

planner::ForeignUsers UseOfNode::Users() const {
  planner::ForeignUsers users;
  planner::Resources most;
  const auto keep_larger = [](std::int64_t amount, const std::string& name_space,
                              std::int64_t& largest, std::string& user) {
    if (amount <= largest) return;
    largest = amount;
    user = name_space;
  };
  for (const auto& [name_space, taken] : by_namespace) {
    keep_larger(taken.gpus, name_space, most.gpus, users.gpus);
    keep_larger(taken.cpu_millis, name_space, most.cpu_millis, users.cpu);
    keep_larger(taken.memory_bytes, name_space, most.memory_bytes, users.memory);
  }
  return users;
}

}  // namespace pliant::controller
