#include "operator/api/pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/fields.h"
#include "operator/api/learner_template.h"
#include "operator/api/resources.h"

namespace pliant::api {
namespace {

// More than an object of the API server can hold, so that the resources of a pod with many parts
// are counted too.
constexpr std::size_t kMaxList = 65536;
constexpr std::size_t kMaxMessage = 1 << 16;

PodPhase PhaseOf(const std::string& text) {
  if (text == "Pending" || text.empty()) return PodPhase::kPending;
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

// The one node that required affinity to metadata.name allows, as the DaemonSet controller writes
// it; "" if the affinity is of any other form.
std::string PinnedNode(Fields& spec) {
  std::vector<std::string> nodes;
  int terms = 0;
  spec.Object("affinity", [&](Fields& affinity) {
    affinity.Object("nodeAffinity", [&](Fields& node_affinity) {
      node_affinity.Object("requiredDuringSchedulingIgnoredDuringExecution", [&](Fields& required) {
        required.Objects("nodeSelectorTerms", kMaxList, [&](Fields& term) {
          ++terms;
          term.Objects("matchFields", kMaxList, [&](Fields& match) {
            if (match.String("key") == "metadata.name" && match.String("operator") == "In") {
              nodes = match.StringList("values", kMaxList);
            }
          });
        });
      });
    });
  });
  return terms == 1 && nodes.size() == 1 ? nodes.front() : "";
}

std::string AnnotatedNode(Fields& root) {
  std::string node;
  root.Object("metadata", [&](Fields& metadata) {
    metadata.Object("annotations", [&](Fields& annotations) {
      node = annotations.String(kAnnotationNode, "", 253);
    });
  });
  return node;
}

ContainerStatus ReadContainerStatus(Fields& fields) {
  ContainerStatus status{.name = fields.String("name"),
                         .restarts = fields.Int("restartCount", 0, 0, INT32_MAX)};
  fields.Object("state", [&](Fields& state) {
    status.running = state.Has("running");
    state.Object("running", [&](Fields& running) {
      status.running_since = running.OptionalTime("startedAt");
    });
    state.Object("waiting", [&](Fields& waiting) {
      status.waiting_reason = waiting.String("reason");
      status.waiting_message = waiting.Sentence("message", kMaxMessage);
    });
    state.Object("terminated", [&](Fields& ended) {
      status.terminated = Termination{.exit_code = ended.Int("exitCode", 0, INT32_MIN, INT32_MAX),
                                      .reason = ended.String("reason"),
                                      .message = ended.Sentence("message", kMaxMessage),
                                      .finished = ended.OptionalTime("finishedAt")};
    });
  });
  return status;
}

bool IsOfDaemonSet(Fields& root) {
  bool is_of_one = false;
  root.Object("metadata", [&](Fields& metadata) {
    metadata.Objects("ownerReferences", kMaxList, [&](Fields& owner) {
      is_of_one = is_of_one || (owner.Bool("controller") && owner.String("kind") == "DaemonSet" &&
                                owner.String("apiVersion").starts_with("apps/"));
    });
  });
  return is_of_one;
}

void ReadSpec(Fields& spec, Pod& pod) {
  pod.node_name = spec.String("nodeName", "", 253);
  pod.planned_node = PinnedNode(spec).substr(0, 253);
  const bool is_labelled = !pod.meta.labels.empty();
  if (is_labelled) {
    pod.has_own_account = spec.String("serviceAccountName", "default") != "default";
    pod.mounts_token = spec.Bool("automountServiceAccountToken", true);
  }
  spec.Objects("schedulingGates", kMaxList, [&](Fields& gate) {
    if (!is_labelled && !pod.scheduling_gates.empty()) return;
    pod.scheduling_gates.push_back(gate.String("name", "", 317));
  });
}

std::size_t BytesOf(const std::string& text) { return sizeof(text) + text.size(); }

// As they are in memory, about.
std::size_t BytesOf(const planner::PodNeeds& needs) {
  std::size_t bytes = sizeof(needs);
  for (const auto& [key, value] : needs.node_selector) bytes += BytesOf(key) + BytesOf(value);
  for (const planner::Toleration& each : needs.tolerations) {
    bytes += BytesOf(each.key) + BytesOf(each.value) + BytesOf(each.effect);
  }
  for (const std::vector<planner::NodeRequirement>& term : needs.node_affinity) {
    bytes += sizeof(term);
    for (const planner::NodeRequirement& each : term) {
      bytes += sizeof(each) + each.key.size();
      for (const std::string& value : each.values) bytes += BytesOf(value);
    }
  }
  return bytes;
}

// Null: they are not kept.
std::shared_ptr<const planner::PodNeeds> NeedsOf(const nlohmann::json& object, bool is_learner,
                                                 const std::string& gpu_resource,
                                                 NeedsCache* cache) {
  auto needs = ReadNeedsOfPod(object, gpu_resource);
  if (!needs) return nullptr;
  if (!is_learner) {
    needs->resources.gpus = 0;
    if (BytesOf(*needs) > kMaxPendingNeeds) return nullptr;
  }
  if (cache != nullptr) return cache->Share(*std::move(needs));
  return std::make_shared<const planner::PodNeeds>(*std::move(needs));
}

void ReadStatus(Fields& status, Pod& pod) {
  pod.phase = PhaseOf(status.String("phase"));
  pod.nominated_node_name = status.String("nominatedNodeName", "", 253);
  if (pod.node_name.empty()) {
    status.Objects("conditions", kMaxList, [&](Fields& condition) {
      if (condition.String("type") == "PodScheduled" && condition.String("status") == "False" &&
          condition.String("reason") == "Unschedulable") {
        pod.unschedulable = true;
      }
    });
  }
  if (pod.meta.labels.empty()) return;
  pod.reason = status.String("reason");
  pod.message = status.Sentence("message", kMaxMessage);
  pod.ip = status.String("podIP", "", 64);
  status.Objects("conditions", kMaxList, [&](Fields& condition) {
    pod.conditions.push_back({.type = condition.String("type"),
                              .status = condition.String("status") == "True",
                              .reason = condition.String("reason"),
                              .message = condition.Sentence("message", kMaxMessage)});
  });
  const auto read_container = [&](Fields& container) {
    pod.containers.push_back(ReadContainerStatus(container));
  };
  status.Objects("initContainerStatuses", kMaxList, read_container);
  status.Objects("containerStatuses", kMaxList, read_container);
}

}  // namespace

const PodCondition* FindCondition(const Pod& pod, std::string_view type) {
  const auto found = std::ranges::find(pod.conditions, type, &PodCondition::type);
  return found == pod.conditions.end() ? nullptr : &*found;
}

const ContainerStatus* FindContainer(const Pod& pod, std::string_view name) {
  const auto found = std::ranges::find(pod.containers, name, &ContainerStatus::name);
  return found == pod.containers.end() ? nullptr : &*found;
}

Result<Pod> DecodePod(const nlohmann::json& object, const std::string& gpu_resource,
                      NeedsCache* cache) {
  Pod pod;
  ASSIGN_OR_RETURN(pod.meta, DecodeMeta(object, "pliant.dev/"));
  Fields root(object);
  pod.requests = ReadTakenBy(object, gpu_resource);
  pod.of_daemon_set = IsOfDaemonSet(root);
  root.Object("spec", [&](Fields& spec) { ReadSpec(spec, pod); });
  root.Object("status", [&](Fields& status) { ReadStatus(status, pod); });
  const bool is_labelled = !pod.meta.labels.empty();
  std::string annotated = is_labelled ? AnnotatedNode(root) : "";
  const bool is_learner = !annotated.empty() && !pod.meta.owner_uid.empty();
  if (is_learner || (pod.unschedulable && pod.requests.MayBeGpus())) {
    pod.asks.needs = NeedsOf(object, is_learner, gpu_resource, cache);
  }
  if (!annotated.empty()) pod.planned_node = std::move(annotated);
  return pod;
}

}  // namespace pliant::api
