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

}  // namespace pliant::operator_sim
