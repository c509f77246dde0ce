#pragma once

#include "operator/api/elastic_training_job.h"
#include "operator/api/fields.h"

// The two halves of DecodeJob.
namespace pliant::api {

void ReadSpec(Fields& fields, const JobSettings& settings, JobSpec& spec);
void ReadStatus(Fields& fields, JobStatus& status);
Reproducibility ReadReproducibility(Fields& fields);
// The maximum of `batch`, if its mode is FromState.
std::optional<std::int64_t> ReadMaxBatchSize(Fields& training);

}  // namespace pliant::api
