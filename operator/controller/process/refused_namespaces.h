#pragma once

#include <set>
#include <string>

#include "operator/controller/actions/job_table.h"

namespace pliant::controller {

// The watched namespaces to which the API server refuses access: each was deleted, or the
// operator's rights in it were removed. Jobs in other namespaces must not wait for that. The data
// on jobs in a refused namespace grows old, so they are left alone, as if they did not exist; the
// pods there count as they were last seen, because they may still hold their GPUs. Control thread.
class RefusedNamespaces {
 public:
  // The stores outlive it. Construct it before the first object enters them.
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
