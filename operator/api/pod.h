#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/api/meta.h"
#include "operator/api/needs_cache.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::api {

// Resources that a pod uses or a node offers.
struct Resources {
  std::int64_t gpus = 0;
  std::int64_t cpu_millis = 0;
  std::int64_t memory_bytes = 0;
  // Amounts of other extended resources, which some pools count as GPUs, such as
  // "nvidia.com/mig-1g.10gb". Only those that are not zero, and at most 32. The name "" stands for
  // all: the pod could not be read.
  std::map<std::string, std::int64_t> others;

  // The amount that counts as GPUs in a pool of this resource; "": `gpus`.
  std::int64_t GpusOf(const std::string& resource) const;
  // Whether some pool may count anything of them as GPUs.
  bool MayBeGpus() const { return gpus > 0 || !others.empty(); }
  // As a pool of this resource counts them.
  planner::Resources CountedAs(const std::string& resource) const;

  bool operator==(const Resources&) const = default;
};

struct PodCondition {
  std::string type;
  bool status = false;  // "True"; "Unknown" is false
  std::string reason;
  std::string message;

  bool operator==(const PodCondition&) const = default;
};

struct Termination {
  int exit_code = 0;
  std::string reason;   // "OOMKilled", "Error", "Completed"
  std::string message;  // what the container wrote to its termination log
  std::optional<WallTime> finished;

  bool operator==(const Termination&) const = default;
};

struct ContainerStatus {
  std::string name;
  bool running = false;
  std::optional<WallTime> running_since;
  int restarts = 0;
  // "ContainerCreating", "ImagePullBackOff"; empty if it is not waiting
  std::string waiting_reason;
  std::string waiting_message;
  std::optional<Termination> terminated;

  bool operator==(const ContainerStatus&) const = default;
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

using planner::SharedNeeds;

// Needs of a pod of others that waits for GPUs are kept up to this size, as they are in memory:
// anybody may create thousands of pods with hundreds of KiB of affinity. A pod with larger ones is
// not helped to a node.
inline constexpr std::size_t kMaxPendingNeeds = std::size_t{4} << 10;

// For a pod without a pliant.dev label only the resources that it uses matter, and there may be
// tens of thousands: of its status only `phase`, `nominated_node_name` and `unschedulable` are
// read, of its gates only the first, and its needs only while it is unschedulable and asks for
// GPUs.
struct Pod {
  ObjectMeta meta;  // with the labels of pliant.dev
  Resources requests;
  // If they are read, and can be. Those of a pod that is no learner are without GPUs.
  SharedNeeds asks;
  std::string node_name;            // the node it is bound to; empty if it is not bound
  std::string nominated_node_name;  // where the scheduler is making room for it by preemption
  // Where its controller wants it: a learner's annotation says it, or the only node that the
  // required affinity names. The scheduler obeys the affinity.
  std::string planned_node;
  bool of_daemon_set = false;
  bool unschedulable = false;  // the scheduler has found no node for it
  // Whether a token of its service account is mounted, and whether that account is not the
  // namespace's default. Read only if the pod has a pliant.dev label.
  bool mounts_token = true;
  bool has_own_account = false;
  std::vector<std::string> scheduling_gates;
  PodPhase phase = PodPhase::kPending;
  std::string reason;  // of the phase, such as "Evicted" or "UnexpectedAdmissionError"
  std::string message;
  std::string ip;
  std::vector<PodCondition> conditions;
  std::vector<ContainerStatus> containers;  // init containers first

  bool operator==(const Pod&) const = default;

  bool ended() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool deleting() const { return meta.deleted.has_value(); }
};

const PodCondition* FindCondition(const Pod& pod, std::string_view type);
const ContainerStatus* FindContainer(const Pod& pod, std::string_view name);

// `gpu_resource`: the extended resource that counts as GPU, such as "nvidia.com/gpu". Fields that
// are not understood are left out, except the resources that the pod uses: a quantity that cannot
// be read counts as the largest one. Pods that are decoded with one cache share equal needs.
Result<Pod> DecodePod(const nlohmann::json& object, const std::string& gpu_resource,
                      NeedsCache* cache = nullptr);

}  // namespace pliant::api
