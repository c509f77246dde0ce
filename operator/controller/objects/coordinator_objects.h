#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/objects/credentials.h"
#include "operator/controller/objects/learner_pod.h"

// The objects beside a job's learners (docs/contracts.md §1, §2).
namespace pliant::controller {

// What goes with the job's Service, which is deleted when the job has ended, is owned by it.
nlohmann::json ServiceReference(const api::ObjectMeta& job, const std::string& service_uid);

nlohmann::json CoordinatorSecret(const api::ObjectMeta& job, std::int64_t term,
                                 const std::string& service_uid, const JobCredentials& credentials);
nlohmann::json LearnerSecret(const api::ObjectMeta& job, std::int64_t term,
                             const std::string& service_uid, const JobCredentials& credentials);

// Its selector names the term: while an old coordinator lives on, learners reach the new one only.
nlohmann::json CoordinatorService(const api::ObjectMeta& job, std::int64_t term);
// A merge patch that points the Service at `term`, if it still is as it was read.
nlohmann::json PointServicePatch(std::int64_t term, const std::string& resource_version);

nlohmann::json CoordinatorPod(const api::ElasticTrainingJob& job, std::int64_t term,
                              const std::string& image, const PodDefaults& defaults);

}  // namespace pliant::controller
