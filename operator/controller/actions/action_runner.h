#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/controller/model/actions.h"
#include "operator/controller/objects/credentials.h"
#include "operator/controller/objects/learner_pod.h"
#include "operator/kube/client.h"
#include "operator/kube/kube_error.h"

namespace pliant::controller {

inline constexpr kube::ResourceType kJobs{"pliant.dev", "v1alpha1", "elastictrainingjobs",
                                          "ElasticTrainingJob"};

// What was decided on one job, to be done in order.
struct Batch {
  api::ElasticTrainingJob job;  // as it was read, with the status that it is to have
  bool write_status = false;
  std::vector<Action> actions;
};

// What came of it, as the server answered. Absent: not done.
struct BatchResult {
  std::optional<kube::KubeError> error;  // of the first that failed
  std::optional<std::size_t> failed;     // the index of that action; nothing: the status
  // Whether that action may have been done, or be done yet, and what is planned next depends on it:
  // a pod that was created counts, and one whose gate is open holds its GPUs.
  bool outcome_unknown = false;
  std::optional<api::ElasticTrainingJob> job;
  std::optional<api::Service> service;
  std::vector<api::Pod> created;
  std::vector<api::Pod> opened;
  std::vector<std::string> deleted;  // names of pods whose deletion has begun
  std::vector<api::Pod> found;       // that were looked for
  std::vector<LookForPod> gone;      // that were looked for, and the server does not have
  bool service_deleted = false;
  // For the job's owner: why the server did not say whether it made the pod that failed, or opened
  // its gate; "": it did, or that passes by itself.
  std::string unanswered;
  // Of CheckTemplate: "" if the template was accepted, else the server's own sentence.
  std::optional<std::string> template_refusal;
  std::string template_unchecked;  // the server's sentence, if it could not check it
  // Of a learner as the server would admit it; null: it was not shown.
  std::shared_ptr<const planner::PodNeeds> admitted_needs;
  std::map<std::string, std::string> mount_causes;  // by pod name; "" if no event tells
};

// Whether the whole batch is done. A result without an error does not always mean that: the server
// may have left a write unanswered, and may have said later that the write was not done.
bool IsAllDone(const BatchResult& result, bool unanswered_before);

// All that writes to the API server for jobs is done here. Writes are conditional, each on its own
// object: on the version or uid that was read, or on nothing being there under a name that only
// this job uses (docs/decisions/status-is-written-first.md). Nothing that somebody else made is
// taken over. Blocking; any thread. `client` outlives the runner.
class ActionRunner {
 public:
  ActionRunner(kube::KubeClient& client, PodDefaults defaults, MasterKeys keys)
      : client_(client), defaults_(std::move(defaults)), keys_(std::move(keys)) {}

  BatchResult Run(const Batch& batch) const;
  // Finds out what has become of an action whose outcome is unknown, the only one of `batch`. A pod
  // that is not there is not created again: another one may have had its name meanwhile.
  BatchResult ResolveUnknownOutcome(const Batch& batch) const;

 private:
  kube::KubeClient& client_;
  const PodDefaults defaults_;
  const MasterKeys keys_;
};

}  // namespace pliant::controller
