#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/objects/credentials.h"
#include "operator/controller/objects/learner_pod.h"

// A job's objects apart from its learners (docs/contracts.md §1, §2).
namespace pliant::controller {

// The owner reference to the job's Service: objects with it are deleted with the Service, when the
// job has ended.
nlohmann::json ServiceReference(const api::ObjectMeta& job, const std::string& service_uid);

nlohmann::json CoordinatorSecret(const api::ObjectMeta& job, std::int64_t term,
                                 const std::string& service_uid, const JobCredentials& credentials);
nlohmann::json LearnerSecret(const api::ObjectMeta& job, std::int64_t term,
                             const std::string& service_uid, const JobCredentials& credentials);

// Its selector names the term: while an old coordinator still runs, learners reach only the new
// one.
nlohmann::json CoordinatorService(const api::ObjectMeta& job, std::int64_t term);
// A merge patch that points the Service at `term`, if the Service is still the version that was
// read.
nlohmann::json PointServicePatch(std::int64_t term, const std::string& resource_version);

nlohmann::json CoordinatorPod(const api::ElasticTrainingJob& job, std::int64_t term,
                              const std::string& image, const PodDefaults& defaults);

}  // namespace pliant::controller
