#include "operator/controller/objects/network_policies.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/controller/model/names.h"
#include "operator/controller/objects/coordinator_objects.h"
#include "operator/controller/objects/learner_pod.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

json PodsOf(const api::ObjectMeta& job) { return {{kLabelJobUid, job.uid}}; }
json PodsOf(const api::ObjectMeta& job, std::string_view role) {
  return {{kLabelJobUid, job.uid}, {kLabelRole, role}};
}

// A peer of the job's own namespace.
json Peer(json labels) { return {{"podSelector", {{"matchLabels", std::move(labels)}}}}; }

// The chart sets the labels; nobody can give the label with the namespace's name to another
// namespace.
json Operator(const JobNetwork& network) {
  json peer = Peer({{kLabelPartOf, kPartOf}, {kLabelComponent, kOperatorComponent}});
  peer["namespaceSelector"] = {
      {"matchLabels", {{"kubernetes.io/metadata.name", network.operator_namespace}}}};
  return peer;
}

json Ports(std::uint16_t port) { return json::array({{{"protocol", "TCP"}, {"port", port}}}); }

json From(json peers, json ports) {
  return {{"from", std::move(peers)}, {"ports", std::move(ports)}};
}

// A rule without peers would admit everybody.
void AddMetricsRule(json& rules, const JobNetwork& network, std::uint16_t port) {
  json peers = json::parse(network.metrics_from);
  if (!peers.empty()) rules.push_back(From(std::move(peers), Ports(port)));
}

json Policy(const api::ObjectMeta& job, const std::string& service_uid, const std::string& name,
            std::string_view role, json spec) {
  json labels = JobLabels(job);
  labels[std::string(kLabelRole)] = role;
  spec["podSelector"]["matchLabels"] = PodsOf(job, role);
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata",
           {{"name", name},
            {"namespace", job.name_space},
            {"labels", std::move(labels)},
            {"ownerReferences", json::array({ServiceReference(job, service_uid)})}}},
          {"spec", std::move(spec)}};
}

// A coordinator answers connections, and never opens one.
json CoordinatorPolicy(const api::ObjectMeta& job, const std::string& service_uid,
                       const JobNetwork& network) {
  json ingress = json::array({From(
      json::array({Peer(PodsOf(job, kRoleLearner)), Operator(network)}), Ports(kCoordinatorPort))});
  AddMetricsRule(ingress, network, kCoordinatorPlainPort);
  return Policy(job, service_uid, CoordinatorName(job), kRoleCoordinator,
                {{"policyTypes", {"Ingress", "Egress"}},
                 {"ingress", std::move(ingress)},
                 {"egress", json::array()}});
}

json LearnerPolicy(const api::ObjectMeta& job, const std::string& service_uid,
                   const JobNetwork& network) {
  // On any port: each learner chooses its own.
  json ingress = json::array({{{"from", json::array({Peer(PodsOf(job, kRoleLearner))})}}});
  AddMetricsRule(ingress, network, kLearnerMetricsPort);
  json spec = {{"policyTypes", {"Ingress"}},
               {"ingress", std::move(ingress)},
               {"egress", nullptr}};  // removes what an earlier policy had
  if (!network.learner_egress.empty()) {
    spec["policyTypes"].push_back("Egress");
    spec["egress"] = json::parse(network.learner_egress);
    spec["egress"].push_back({{"to", json::array({Peer(PodsOf(job))})}});
  }
  return Policy(job, service_uid, LearnerPolicyName(job), kRoleLearner, std::move(spec));
}

}  // namespace

std::vector<json> NetworkPolicies(const api::ObjectMeta& job, const std::string& service_uid,
                                  const JobNetwork& network) {
  return {CoordinatorPolicy(job, service_uid, network), LearnerPolicy(job, service_uid, network)};
}

}  // namespace pliant::controller
