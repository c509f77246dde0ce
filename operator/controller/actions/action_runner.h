#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
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
inline constexpr kube::ResourceType kGpuPools{"pliant.dev", "v1alpha1", "gpupools", "GpuPool",
                                              false};
inline constexpr kube::ResourceType kTrainingQueues{"pliant.dev", "v1alpha1", "trainingqueues",
                                                    "TrainingQueue", false};

// A decision on one job, to be carried out in order.
struct Batch {
  api::ElasticTrainingJob job;  // as it was read, but with the new status
  bool write_status = false;
  std::vector<Action> actions;
  bool held_back = false;  // actions that serve learners were left out, because the job backs off
};

// The result of a batch, from the server's answers. Absent: not done.
struct BatchResult {
  std::optional<kube::KubeError> error;  // of the first failure
  std::optional<std::size_t> failed;     // index of the failed action; nullopt: the status
  // Whether that action may have been done, or may still be done, and the next plan depends on it:
  // a created pod counts, and one whose gate is open holds its GPUs.
  bool outcome_unknown = false;
  bool lacks_quota = false;  // it was a learner for whose GPUs a quota has no room now
  std::optional<api::ElasticTrainingJob> job;
  std::optional<api::Service> service;
  std::vector<api::Pod> created;
  std::vector<api::Pod> opened;
  std::vector<std::string> deleted;  // names of pods whose deletion has begun
  std::vector<api::Pod> found;       // pods that LookForPod found
  std::vector<LookForPod> gone;      // searched pods that the server does not have
  bool service_deleted = false;
  // For the job's owner: why the server did not say whether it created the pod, or opened its gate;
  // "": it did say, or the error passes by itself.
  std::string unanswered;
  // The answer to CheckTemplate: "" if the template was accepted, else the server's own message.
  std::optional<std::string> template_refusal;
  std::string template_unchecked;  // the server's message, if it could not check it
  // The needs of a learner as the server would admit it; null: the answer did not show them.
  std::shared_ptr<const planner::PodNeeds> admitted_needs;
  std::map<std::string, std::string> mount_causes;  // by pod name; "": no event names one
};

// Whether the whole batch is done. A result without an error does not always mean that: the server
// may not have answered a write, and may have said later that it was not done.
bool IsAllDone(const BatchResult& result, bool unanswered_before);

// Makes all writes to the API server for jobs. Admission webhooks may take seconds for each pod:
// once a batch has taken `kMaxMaking`, learners that it has not created are left to the next
// decision, unless they would be its first. Each write is conditional on its own object: on the
// version or uid that was read, or on the absence of an object of a name that only this job uses
// (docs/decisions/status-is-written-first.md). It never adopts an object that somebody else made.
// Blocking; any thread. `client` outlives the runner.
class ActionRunner {
 public:
  static constexpr Duration kMaxMaking = std::chrono::seconds(2);

  // `now`: any thread may call it.
  ActionRunner(kube::KubeClient& client, PodDefaults defaults, MasterKeys keys,
               std::function<TimePoint()> now)
      : client_(client),
        defaults_(std::move(defaults)),
        keys_(std::move(keys)),
        now_(std::move(now)) {}

  BatchResult Run(const Batch& batch) const;
  // Finds the outcome, so far unknown, of the only action of `batch`. A pod that does not exist is
  // not created again: another one may have had its name meanwhile.
  BatchResult ResolveUnknownOutcome(const Batch& batch) const;

 private:
  kube::KubeClient& client_;
  const PodDefaults defaults_;
  const MasterKeys keys_;
  const std::function<TimePoint()> now_;
};

}  // namespace pliant::controller
