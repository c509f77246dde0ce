#include "operator/controller/process/refused_namespaces.h"

#include <utility>

#include "base/log.h"

namespace pliant::controller {

RefusedNamespaces::RefusedNamespaces(ClusterStores stores) : stores_(stores) {
  stores_.jobs.OnRefusal([this] { Update(); });
  stores_.pods.OnRefusal([this] { Update(); });
  stores_.services.OnRefusal([this] { Update(); });
  stores_.quotas.OnRefusal([this] { Update(); });
}

// Rights are granted and removed for each kind separately, and open watches continue for minutes:
// one kind that cannot be watched is enough.
void RefusedNamespaces::Update() {
  std::set<std::string> refused = stores_.jobs.refused();
  refused.insert(stores_.pods.refused().begin(), stores_.pods.refused().end());
  refused.insert(stores_.services.refused().begin(), stores_.services.refused().end());
  refused.insert(stores_.quotas.refused().begin(), stores_.quotas.refused().end());
  for (const std::string& ns : refused) {
    if (refused_.contains(ns)) continue;
    log::Warning("the API server refuses access to a watched namespace; its jobs are left alone",
                 {{"namespace", ns}});
  }
  for (const std::string& ns : refused_) {
    if (refused.contains(ns)) continue;
    log::Info("a watched namespace is accessible again", {{"namespace", ns}});
  }
  refused_ = std::move(refused);
  stores_.jobs.Hide(refused_);
}

}  // namespace pliant::controller
