#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/objects/network_policies.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// The settings that the pods of all jobs share.
struct PodDefaults {
  std::string gpu_resource = "nvidia.com/gpu";
  std::string priority_class;              // of learners; "": what the template says, or none
  std::string coordinator_priority_class;  // "": that of learners
  std::vector<std::string> coordinator_pull_secrets;
  std::string coordinator_template;   // JSON, checked (coordinator_template.h); ""
  std::optional<JobNetwork> network;  // none: no network policies are made
  bool scrape_annotations = false;    // prometheus.io/scrape, port and path
  bool nccl_allowed = false;          // which neither encrypts nor authenticates
  api::JobSettings jobs;              // to decode jobs in the server's answers
};

// The extended resource that the job's learners use.
const std::string& GpuResourceOf(const api::ElasticTrainingJob& job, const PodDefaults& defaults);

// The pod of learner `number`: the job's template, overlaid with what a learner needs
// (docs/contracts.md §3). It is gated, and may run on the node of `place` only. `coordinator_ip`:
// the cluster IP of the job's Service.
nlohmann::json LearnerPod(const api::ElasticTrainingJob& job, const api::FrozenTraining& training,
                          std::int64_t term, int number, const planner::NewLearner& place,
                          const std::string& coordinator_ip, const PodDefaults& defaults);

// Fields of the job's template that its learners do not have, because the operator sets them or
// drops them: "metadata.finalizers", "env PLIANT_SEED". Empty for a template that is too large to
// be kept.
std::vector<std::string> IgnoredFields(const api::ElasticTrainingJob& job,
                                       const api::FrozenTraining& training);

// The owner reference by which an object is deleted with its job.
nlohmann::json OwnerReference(const api::ObjectMeta& job);
// The annotations by which a plain Prometheus finds /metrics at `port`.
nlohmann::json ScrapeAnnotations(std::uint16_t port);
// The labels of everything that belongs to a job.
nlohmann::json JobLabels(const api::ObjectMeta& job);

}  // namespace pliant::controller
