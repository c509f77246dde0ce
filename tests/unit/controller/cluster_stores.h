#pragma once

#include "operator/controller/actions/job_table.h"

namespace pliant::controller {

// The stores of one cluster, for tests that fill some of them.
struct OwnStores {
  kube::Store<api::ElasticTrainingJob> jobs;
  kube::Store<api::Pod> pods;
  kube::Store<api::Node> nodes;
  kube::Store<api::Service> services;
  kube::Store<api::ResourceQuota> quotas;
  kube::Store<api::TrainingQueue> queues;
  kube::Store<api::GpuPool> pools;
  kube::Store<api::Namespace> namespaces;

  ClusterStores all() {
    return {.jobs = jobs,
            .pods = pods,
            .nodes = nodes,
            .services = services,
            .quotas = quotas,
            .queues = queues,
            .pools = pools,
            .namespaces = namespaces};
  }
};

}  // namespace pliant::controller
