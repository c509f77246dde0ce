#pragma once

#include <set>
#include <string>

#include "operator/controller/actions/job_table.h"

namespace pliant::controller {

// The watched namespaces that the server keeps from this program: each was deleted, or what gave
// the rights in it. The jobs of all others are not to wait for that. What was known of its own
// grows old, so that they are left alone, as if they were not there; its pods are taken to be as
// they were seen last, because they may still hold their GPUs. Control thread.
class RefusedNamespaces {
 public:
  // The stores outlive it. Before the first object comes into them.
  explicit RefusedNamespaces(ClusterStores stores);
  RefusedNamespaces(const RefusedNamespaces&) = delete;
  RefusedNamespaces& operator=(const RefusedNamespaces&) = delete;

  const std::set<std::string>& names() const { return refused_; }

 private:
  void Update();

  const ClusterStores stores_;
  std::set<std::string> refused_;
};

}  // namespace pliant::controller
