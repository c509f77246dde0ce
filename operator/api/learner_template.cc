#include "operator/api/learner_template.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/sha.h>

#include "base/format.h"
#include "base/hex.h"
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

// A prefix, a slash and a name: the longest key of a label.
constexpr std::size_t kMaxText = 317;

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
  planner::NodeRequirement requirement{
      .key = expression.String("key", "", kMaxText),
      .values = expression.StringList("values", kMaxValues, kMaxText)};
  if (const auto op = OperatorOf(expression.String("operator"))) {
    requirement.op = *op;
  } else {
    expression.Wrong("operator", "must be In, NotIn, Exists, DoesNotExist, Gt or Lt");
  }
  return requirement;
}

planner::Toleration ReadToleration(Fields& toleration) {
  return {.key = toleration.String("key", "", kMaxText),
          .value = toleration.String("value", "", kMaxText),
          .effect = toleration.String("effect", "", kMaxText),
          .exists = toleration.String("operator", "Equal") == "Exists"};
}

using Requirements = std::vector<planner::NodeRequirement>;

// Removes the pin of a learner to its node, the last requirement that names one hostname
// (controller/objects/learner_pod.cc).
void RemovePin(Requirements& term) {
  const auto pin = std::ranges::find_last_if(term, [](const planner::NodeRequirement& each) {
    return each.key == planner::kHostnameLabel && each.op == planner::NodeOperator::kIn &&
           each.values.size() == 1;
  });
  if (!pin.empty()) term.erase(pin.begin());
}

// A pin is in each term of a learner, besides what its template may have.
enum class Pin : std::uint8_t { kNone, kInEachTerm };

// A term with only matchFields names nodes. The planner does not evaluate it: such a term counts as
// "any node".
void ReadAffinity(Fields& spec, Pin pin, planner::PodNeeds& needs) {
  const std::size_t pins = pin == Pin::kNone ? 0 : 1;
  bool any_node = false;
  std::size_t values = 0;
  spec.Object("affinity", [&](Fields& affinity) {
    affinity.Object("nodeAffinity", [&](Fields& node_affinity) {
      node_affinity.Object("requiredDuringSchedulingIgnoredDuringExecution", [&](Fields& required) {
        required.Objects("nodeSelectorTerms", kMaxTerms, [&](Fields& term) {
          Requirements requirements;
          term.Objects("matchExpressions", kMaxExpressions + pins, [&](Fields& expression) {
            requirements.push_back(ReadRequirement(expression));
            values += requirements.back().values.size();
            if (values > kMaxAllValues + pins * kMaxTerms) {
              expression.Wrong("values", Format("more than {} in all terms", kMaxAllValues));
            }
          });
          if (pin == Pin::kInEachTerm) RemovePin(requirements);
          any_node |= requirements.empty() && term.Has("matchFields");
          needs.node_affinity.push_back(std::move(requirements));
        });
      });
    });
  });
  if (any_node) needs.node_affinity.clear();
  // A term that was nothing but a pin is empty now.
  if (pin == Pin::kInEachTerm) std::erase_if(needs.node_affinity, &Requirements::empty);
}

// `spec` of a pod. An empty `gpu_resource`: GPUs are not counted.
void ReadPodSpec(Fields& spec, const std::string& gpu_resource, Pin pin, planner::PodNeeds& needs) {
  const Resources requests = ReadPodRequests(spec, gpu_resource);
  if (!gpu_resource.empty()) needs.resources.gpus = requests.gpus;
  needs.resources.cpu_millis = std::min(requests.cpu_millis, kMaxCpuMillis);
  needs.resources.memory_bytes = std::min(requests.memory_bytes, kMaxMemoryBytes);
  needs.node_selector = spec.Strings("nodeSelector", kMaxNodeLabels, kMaxText);
  spec.Objects("tolerations", kMaxTolerations, [&](Fields& toleration) {
    needs.tolerations.push_back(ReadToleration(toleration));
  });
  ReadAffinity(spec, pin, needs);
}

// The needs of a learner on its node, as far as the planner understands a pod template.
Result<planner::PodNeeds> ReadNeeds(const nlohmann::json& pod_template, int gpus_per_learner) {
  Fields root(pod_template, "spec.template");
  planner::PodNeeds needs{.resources = {.gpus = gpus_per_learner}};
  root.Object("spec", [&](Fields& pod) {
    // The GPU count comes from gpusPerLearner, whatever the template says.
    ReadPodSpec(pod, /*gpu_resource=*/"", Pin::kNone, needs);
  });
  if (root.error()) return std::unexpected(*root.error());
  return needs;
}

std::string HashOf(std::string_view pod_template, std::string_view volume) {
  const std::string text = Format("{}\n{}\n{}", pod_template.size(), pod_template, volume);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return Hex(std::as_bytes(std::span(digest)));
}

bool IsLearner(const nlohmann::json& pod) {
  const auto annotations = nlohmann::json::json_pointer("/metadata/annotations");
  return pod.contains(annotations) && pod.at(annotations).contains(kAnnotationNode);
}

}  // namespace

Result<planner::PodNeeds> ReadNeedsOfPod(const nlohmann::json& pod,
                                         const std::string& gpu_resource) {
  Fields root(pod);
  planner::PodNeeds needs;
  const Pin pin = IsLearner(pod) ? Pin::kInEachTerm : Pin::kNone;
  root.Object("spec", [&](Fields& spec) { ReadPodSpec(spec, gpu_resource, pin, needs); });
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
