#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/simulation/operator/cluster.h"

namespace pliant::operator_sim {

// A node autoscaler of the kind of Karpenter and cluster-autoscaler: for pods that the scheduler
// finds no node for, it adds nodes after a while. Their GPUs appear later than the nodes, once the
// device plugin runs.
class Autoscaler {
 public:
  // `server` and `cluster` outlive it, and `loop` runs no task of it after it has gone.
  Autoscaler(EventLoop& loop, kube::MemoryApiServer& server, Cluster& cluster, int gpus_per_node);

  int nodes_added() const { return nodes_added_; }

 private:
  void Look();
  // GPUs that pods wait for, without those of nodes that come.
  int LackingGpus() const;
  void AddNode();

  EventLoop& loop_;
  kube::MemoryApiServer& server_;
  Cluster& cluster_;
  const int gpus_per_node_;
  int nodes_added_ = 0;
  int gpus_coming_ = 0;
};

// cluster-autoscaler, as far as it handles ProvisioningRequests: it looks at them from time to
// time, fails at the first attempts, and adds all nodes for one at once.
class ClusterAutoscaler {
 public:
  // As of Autoscaler.
  ClusterAutoscaler(EventLoop& loop, kube::MemoryApiServer& server, Cluster& cluster,
                    int gpus_per_node, int failures);

  int nodes_added() const { return nodes_added_; }

 private:
  void Look();
  void Handle(const std::string& path, const Json& request);
  void SetCondition(const std::string& path, const std::string& type);

  EventLoop& loop_;
  kube::MemoryApiServer& server_;
  Cluster& cluster_;
  const int gpus_per_node_;
  int failures_;
  int nodes_added_ = 0;
};

}  // namespace pliant::operator_sim
