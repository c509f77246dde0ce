#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::api {

// The node that a learner was created for. Its affinity cannot tell: it names a label's value.
inline constexpr char kAnnotationNode[] = "pliant.dev/node";

// The pod template of a job's learners, as its owner wrote it.
struct LearnerTemplate {
  // Larger texts are not kept in memory but fetched when a pod is created: a tenant may write
  // hundreds of KiB into each of a thousand jobs.
  static constexpr std::size_t kMaxKeptBytes = std::size_t{16} << 10;

  // spec.template: a PodTemplateSpec, unchanged; "" if it is larger than kMaxKeptBytes
  std::string json;
  // Hash of the template and of spec.checkpoint.volume. If it changes, new learners differ from old
  // ones.
  std::string hash;
  // Needs of one learner; null if the template has a field that is not valid.
  std::shared_ptr<const planner::PodNeeds> needs;
  std::string error;  // names the wrong field; empty if `needs` is set

  // The other members follow from these two.
  bool operator==(const LearnerTemplate& other) const {
    return json == other.json && hash == other.hash;
  }
};

// Needs of an existing pod, including what admission added (tolerations, defaults, sidecars), but
// without the operator's pin to one node. GPUs are those of all its containers.
Result<planner::PodNeeds> ReadNeedsOfPod(const nlohmann::json& pod,
                                         const std::string& gpu_resource);

// `json` is the text of `pod_template`.
LearnerTemplate ReadLearnerTemplate(const nlohmann::json& pod_template, std::string json,
                                    std::string_view volume_json, int gpus_per_learner);

}  // namespace pliant::api
