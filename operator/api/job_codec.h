#pragma once

#include "operator/api/elastic_training_job.h"
#include "operator/api/fields.h"

// The two halves of DecodeJob.
namespace pliant::api {

void ReadSpec(Fields& fields, const JobSettings& settings, JobSpec& spec);
void ReadStatus(Fields& fields, JobStatus& status);
Reproducibility ReadReproducibility(Fields& fields);

}  // namespace pliant::api
