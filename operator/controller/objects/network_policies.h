#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/meta.h"

namespace pliant::controller {

// Who, beside the job itself, may talk to a job's pods, and they to whom.
struct JobNetwork {
  std::string operator_namespace;
  std::string metrics_from = "[]";  // JSON: peers, as in a NetworkPolicy; none: nobody
  std::string learner_egress;       // JSON: further rules of egress; "": learners reach everything
};

// The policies of a job's coordinator and of its learners, which go with its Service
// (docs/contracts.md §1).
std::vector<nlohmann::json> NetworkPolicies(const api::ObjectMeta& job,
                                            const std::string& service_uid,
                                            const JobNetwork& network);

}  // namespace pliant::controller
