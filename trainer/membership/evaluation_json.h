#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "trainer/membership/evaluation.h"
#include "trainer/membership/json_fields.h"

// The field `evaluations` of a heartbeat and of a job's progress.
namespace pliant {

// A list. Numbers that are not finite are omitted: JSON has none.
nlohmann::json Encoded(const std::vector<Evaluation>& evaluations);
// Empty if the field is absent.
std::vector<Evaluation> ReadEvaluations(JsonFields& fields);

}  // namespace pliant
