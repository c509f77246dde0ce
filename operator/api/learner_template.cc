#include "operator/api/learner_template.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/sha.h>

#include "base/format.h"
#include "operator/api/fields.h"
#include "operator/api/resources.h"

namespace pliant::api {
namespace {

// The limits of the custom resource definition. Every plan compares each node with all of this, for
// each template.
constexpr std::size_t kMaxTerms = 20;
constexpr std::size_t kMaxExpressions = 50;  // per term
constexpr std::size_t kMaxValues = 256;      // per expression
constexpr std::size_t kMaxAllValues = 2048;  // in all expressions together
constexpr std::size_t kMaxTolerations = 64;
constexpr std::size_t kMaxNodeLabels = 64;

// More than any node has, and small enough that the planner can add up the requests of hundreds of
// learners without overflow.
constexpr std::int64_t kMaxCpuMillis = std::int64_t{1} << 32;
constexpr std::int64_t kMaxMemoryBytes = std::int64_t{1} << 48;

std::optional<planner::NodeOperator> OperatorOf(std::string_view text) {
  using enum planner::NodeOperator;
  for (const planner::NodeOperator op : {kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt}) {
    if (ToString(op) == text) return op;
  }
  return std::nullopt;
}

planner::NodeRequirement ReadRequirement(Fields& expression) {
  planner::NodeRequirement requirement{.key = expression.String("key"),
                                       .values = expression.StringList("values", kMaxValues)};
  if (const auto op = OperatorOf(expression.String("operator"))) {
    requirement.op = *op;
  } else {
    expression.Wrong("operator", "must be In, NotIn, Exists, DoesNotExist, Gt or Lt");
  }
  return requirement;
}

planner::Toleration ReadToleration(Fields& toleration) {
  return {.key = toleration.String("key"),
          .value = toleration.String("value"),
          .effect = toleration.String("effect"),
          .exists = toleration.String("operator", "Equal") == "Exists"};
}

// A term with only matchFields names nodes, as the operator's own pods do. The planner does not
// evaluate it: such a term counts as "any node".
void ReadAffinity(Fields& spec, planner::PodNeeds& needs) {
  bool any_node = false;
  std::size_t values = 0;
  spec.Object("affinity", [&](Fields& affinity) {
    affinity.Object("nodeAffinity", [&](Fields& node_affinity) {
      node_affinity.Object("requiredDuringSchedulingIgnoredDuringExecution", [&](Fields& required) {
        required.Objects("nodeSelectorTerms", kMaxTerms, [&](Fields& term) {
          std::vector<planner::NodeRequirement> requirements;
          term.Objects("matchExpressions", kMaxExpressions, [&](Fields& expression) {
            requirements.push_back(ReadRequirement(expression));
            values += requirements.back().values.size();
            if (values > kMaxAllValues) {
              expression.Wrong("values", Format("more than {} in all terms", kMaxAllValues));
            }
          });
          any_node |= requirements.empty() && term.Has("matchFields");
          needs.node_affinity.push_back(std::move(requirements));
        });
      });
    });
  });
  if (any_node) needs.node_affinity.clear();
}

// `spec` of a pod. An empty `gpu_resource`: GPUs are not counted.
void ReadPodSpec(Fields& spec, const std::string& gpu_resource, planner::PodNeeds& needs) {
  const Resources requests = ReadPodRequests(spec, gpu_resource);
  if (!gpu_resource.empty()) needs.resources.gpus = requests.gpus;
  needs.resources.cpu_millis = std::min(requests.cpu_millis, kMaxCpuMillis);
  needs.resources.memory_bytes = std::min(requests.memory_bytes, kMaxMemoryBytes);
  needs.node_selector = spec.Strings("nodeSelector", kMaxNodeLabels);
  spec.Objects("tolerations", kMaxTolerations, [&](Fields& toleration) {
    needs.tolerations.push_back(ReadToleration(toleration));
  });
  ReadAffinity(spec, needs);
}

// The needs of a learner on its node, as far as the planner understands a pod template.
Result<planner::PodNeeds> ReadNeeds(const nlohmann::json& pod_template, int gpus_per_learner) {
  Fields root(pod_template, "spec.template");
  planner::PodNeeds needs{.resources = {.gpus = gpus_per_learner}};
  root.Object("spec", [&](Fields& pod) {
    // The GPU count comes from gpusPerLearner, whatever the template says.
    ReadPodSpec(pod, /*gpu_resource=*/"", needs);
  });
  if (root.error()) return std::unexpected(*root.error());
  return needs;
}

std::string HashOf(std::string_view pod_template, std::string_view volume) {
  const std::string text = Format("{}\n{}\n{}", pod_template.size(), pod_template, volume);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) hex += Format("{:02x}", byte);
  return hex;
}

}  // namespace

Result<planner::PodNeeds> ReadNeedsOfPod(const nlohmann::json& pod,
                                         const std::string& gpu_resource) {
  Fields root(pod);
  planner::PodNeeds needs;
  root.Object("spec", [&](Fields& spec) { ReadPodSpec(spec, gpu_resource, needs); });
  if (root.error()) return std::unexpected(*root.error());
  return needs;
}

LearnerTemplate ReadLearnerTemplate(const nlohmann::json& pod_template, std::string json,
                                    std::string_view volume_json, int gpus_per_learner) {
  LearnerTemplate read{.hash = HashOf(json, volume_json)};
  if (auto needs = ReadNeeds(pod_template, gpus_per_learner)) {
    read.needs = std::make_shared<const planner::PodNeeds>(*std::move(needs));
  } else {
    read.error = needs.error().message;
  }
  if (json.size() <= LearnerTemplate::kMaxKeptBytes) read.json = std::move(json);
  return read;
}

}  // namespace pliant::api
