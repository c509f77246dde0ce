#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/controller/actions/job_table.h"
#include "operator/controller/rounds/node_request_parts.h"
#include "operator/kube/store.h"
#include "operator/metrics/metrics.h"

namespace pliant::controller {

// Removes pods and Services of jobs that are gone. The garbage collector removes what a deleted job
// owns, unless its owner had it orphaned (`kubectl delete --cascade=orphan`): then learners would
// hold GPUs outside of all plans. A job counts as gone if the API server said so twice, a minute
// apart, and answers a list of jobs. Only objects that are as the operator makes them, and have no
// other owner, are removed. Secrets and network policies go with their Service. Control thread.
class Orphans {
 public:
  // `table` outlives it.
  Orphans(NodeRequestParts parts, const JobTable& table)
      : parts_(std::move(parts)), table_(table) {}

  void See(const kube::Store<api::Pod>::Change& change);
  void See(const kube::Store<api::Service>::Change& change);

  // Looks for some jobs, and removes what is left of those that are gone. Call it after the table
  // was refreshed. Returns when to call it again, even if nothing happens.
  std::optional<api::WallTime> Reconcile(api::WallTime now);

  // The GPUs that are held by pods whose job is gone.
  std::vector<metrics::OrphanStats> Stats() const;

 private:
  // The objects that say that they belong to one job, which may exist.
  struct Remains {
    std::map<std::string, std::shared_ptr<const api::Pod>> pods;  // by name
    std::shared_ptr<const api::Service> service;
    std::optional<api::WallTime> look_at;  // absent: the job is there
    bool missed = false;                   // the last look did not find the job
    bool found = false;                    // the last look did
  };
  // The job's uid, as the labels of its objects have it, in the job's namespace.
  struct JobUid {
    std::string name_space;
    std::string uid;
    auto operator<=>(const JobUid&) const = default;
  };
  // The search for one job, and the objects that go if it is missing. `job`: namespace, name and
  // uid.
  struct Look {
    api::ObjectMeta job;
    bool remove = false;  // if the job is missing again
    std::vector<std::shared_ptr<const api::Pod>> pods;
    std::shared_ptr<const api::Service> service;
  };
  enum class Finding : std::uint8_t { kThere, kGone, kUnknown };

  template <typename T>
  static std::optional<JobUid> JobOf(const T& object);
  void Forget(const JobUid& job);
  std::optional<Look> LookFor(const JobUid& job, const Remains& remains) const;
  void Start(std::vector<Look> looks);
  void OnFound(const Look& look, Finding finding);
  static Finding Find(const api::ObjectMeta& job, kube::KubeClient& client);
  static void Remove(const Look& look, kube::KubeClient& client);

  const NodeRequestParts parts_;
  const JobTable& table_;
  std::map<JobUid, Remains> by_job_;
  bool is_under_way_ = false;
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
