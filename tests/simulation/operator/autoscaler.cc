#include "tests/simulation/operator/autoscaler.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "tests/simulation/operator/objects.h"

namespace pliant::operator_sim {

using namespace std::chrono_literals;

Autoscaler::Autoscaler(EventLoop& loop, kube::MemoryApiServer& server, Cluster& cluster,
                       int gpus_per_node)
    : loop_(loop), server_(server), cluster_(cluster), gpus_per_node_(gpus_per_node) {
  Look();
}

void Autoscaler::Look() {
  while (LackingGpus() > gpus_coming_) AddNode();
  loop_.PostAfter(10s, [this] { Look(); });
}

int Autoscaler::LackingGpus() const {
  int gpus = 0;
  for (const auto& [path, pod] : server_.All(kPods)) {
    if (IsUnschedulable(*pod)) gpus += RequestedGpus(*pod);
  }
  return gpus;
}

void Autoscaler::AddNode() {
  const std::string name = Format("added-{}", nodes_added_++);
  gpus_coming_ += gpus_per_node_;
  loop_.PostAfter(40s, [this, name] {
    cluster_.AddNode(name, gpus_per_node_);
    cluster_.SetUnhealthyGpus(name, gpus_per_node_);
  });
  loop_.PostAfter(60s, [this, name] { cluster_.SetUnhealthyGpus(name, 0); });
  loop_.PostAfter(70s, [this] { gpus_coming_ -= gpus_per_node_; });
}

ClusterAutoscaler::ClusterAutoscaler(EventLoop& loop, kube::MemoryApiServer& server,
                                     Cluster& cluster, int gpus_per_node, int failures)
    : loop_(loop),
      server_(server),
      cluster_(cluster),
      gpus_per_node_(gpus_per_node),
      failures_(failures) {
  Look();
}

void ClusterAutoscaler::Look() {
  for (const auto& [path, request] : server_.All(kProvisioningRequests)) Handle(path, *request);
  loop_.PostAfter(10s, [this] { Look(); });
}

void ClusterAutoscaler::Handle(const std::string& path, const Json& request) {
  if (!request.value("/status/conditions"_json_pointer, Json::array()).empty()) return;
  const Json pods = request.at("/spec/podSets/0"_json_pointer);
  const auto pod_template = server_.Find("/api/v1/namespaces/pliant-system/podtemplates/" +
                                         pods.at("podTemplateRef").at("name").get<std::string>());
  if (pod_template == nullptr || failures_ > 0) {
    --failures_;
    SetCondition(path, "Failed");
    return;
  }
  SetCondition(path, "Accepted");
  const int gpus = pods.at("count").get<int>() * RequestedGpus(pod_template->at("template"));
  loop_.PostAfter(60s, [this, path, gpus] {
    if (server_.Find(path) == nullptr) return;
    for (int added = 0; added < gpus; added += gpus_per_node_) {
      cluster_.AddNode(Format("provisioned-{}", nodes_added_++), gpus_per_node_);
    }
    SetCondition(path, "Provisioned");
  });
}

void ClusterAutoscaler::SetCondition(const std::string& path, const std::string& type) {
  server_.Change(path, [&](Json& request) {
    request["status"]["conditions"].push_back({{"type", type},
                                               {"status", "True"},
                                               {"reason", type},
                                               {"message", "by the simulation"},
                                               {"lastTransitionTime", "2026-01-02T03:04:05Z"}});
  });
}

}  // namespace pliant::operator_sim
