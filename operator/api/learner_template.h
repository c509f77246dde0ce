#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::api {

// What a job's learners are made of, as its owner wrote it.
struct LearnerTemplate {
  // A tenant may write hundreds of KiB into each of a thousand jobs: such texts are not kept, but
  // fetched when a pod is made.
  static constexpr std::size_t kKeptBytesMax = std::size_t{16} << 10;

  std::string json;  // spec.template: a PodTemplateSpec, as it is; "" if it is larger
  // Of the template and of spec.checkpoint.volume: learners of two hashes are made of different
  // things.
  std::string hash;
  // Of one learner; null if the template asks for something that is no such thing.
  std::shared_ptr<const planner::PodNeeds> needs;
  std::string error;  // the field that is wrong; empty if there are needs

  // The rest follows from these.
  bool operator==(const LearnerTemplate& other) const {
    return json == other.json && hash == other.hash;
  }
};

// What a pod asks of its node as the API server has it: with what was added on the way in
// (tolerations, defaults, sidecars). GPUs are those of all its containers.
Result<planner::PodNeeds> ReadNeedsOfPod(const nlohmann::json& pod,
                                         const std::string& gpu_resource);

// `json` is the text of `pod_template`.
LearnerTemplate ReadLearnerTemplate(const nlohmann::json& pod_template, std::string json,
                                    std::string_view volume_json, int gpus_per_learner);

}  // namespace pliant::api
