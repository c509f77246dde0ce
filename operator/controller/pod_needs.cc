#include "operator/controller/pod_needs.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/api/fields.h"
#include "operator/api/resources.h"

namespace pliant::controller {
namespace {

using api::Fields;

constexpr std::size_t kListMax = 1024;

std::optional<planner::NodeOperator> OperatorOf(std::string_view text) {
  using enum planner::NodeOperator;
  constexpr std::pair<std::string_view, planner::NodeOperator> kOperators[] = {
      {"In", kIn}, {"NotIn", kNotIn}, {"Exists", kExists}, {"DoesNotExist", kDoesNotExist},
      {"Gt", kGt}, {"Lt", kLt}};
  for (const auto& [name, op] : kOperators) {
    if (name == text) return op;
  }
  return std::nullopt;
}

planner::NodeRequirement ReadRequirement(Fields& expression) {
  planner::NodeRequirement requirement{.key = expression.String("key"),
                                       .values = expression.StringList("values", kListMax)};
  if (const auto op = OperatorOf(expression.String("operator"))) {
    requirement.op = *op;
  } else {
    expression.Wrong("operator", "none of In, NotIn, Exists, DoesNotExist, Gt and Lt");
  }
  return requirement;
}

planner::Toleration ReadToleration(Fields& toleration) {
  return {.key = toleration.String("key"),
          .value = toleration.String("value"),
          .effect = toleration.String("effect"),
          .exists = toleration.String("operator", "Equal") == "Exists"};
}

void ReadAffinity(Fields& spec, planner::PodNeeds& needs) {
  spec.Object("affinity", [&](Fields& affinity) {
    affinity.Object("nodeAffinity", [&](Fields& node_affinity) {
      node_affinity.Object("requiredDuringSchedulingIgnoredDuringExecution", [&](Fields& required) {
        required.Objects("nodeSelectorTerms", kListMax, [&](Fields& term) {
          std::vector<planner::NodeRequirement> requirements;
          term.Objects("matchExpressions", kListMax, [&](Fields& expression) {
            requirements.push_back(ReadRequirement(expression));
          });
          needs.node_affinity.push_back(std::move(requirements));
        });
      });
    });
  });
}

}  // namespace

Result<planner::PodNeeds> NeedsOfLearner(const api::JobSpec& spec,
                                         const std::string& gpu_resource) {
  const auto pod_template =
      nlohmann::json::parse(spec.template_json, /*cb=*/nullptr, /*allow_exceptions=*/false);
  Fields root(pod_template, "spec.template");
  planner::PodNeeds needs;
  root.Object("spec", [&](Fields& pod) {
    const api::Resources requests = api::ReadPodRequests(pod, gpu_resource);
    needs.resources = {.gpus = spec.elastic.gpus_per_learner,  // whatever the template says
                       .cpu_millis = requests.cpu_millis,
                       .memory_bytes = requests.memory_bytes};
    needs.node_selector = pod.Strings("nodeSelector", kListMax);
    pod.Objects("tolerations", kListMax, [&](Fields& toleration) {
      needs.tolerations.push_back(ReadToleration(toleration));
    });
    ReadAffinity(pod, needs);
  });
  if (root.error()) return std::unexpected(*root.error());
  return needs;
}

}  // namespace pliant::controller
