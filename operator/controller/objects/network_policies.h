#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/meta.h"

namespace pliant::controller {

// The peers that may connect to a job's pods, and that these may connect to, apart from the job
// itself.
struct JobNetwork {
  std::string operator_namespace;
  std::string metrics_from = "[]";  // JSON: peers, as in a NetworkPolicy; empty: nobody
  std::string learner_egress;       // JSON: further egress rules; "": all is allowed
};

// The policies of a job's coordinator and of its learners, which its Service owns
// (docs/contracts.md §1).
std::vector<nlohmann::json> NetworkPolicies(const api::ObjectMeta& job,
                                            const std::string& service_uid,
                                            const JobNetwork& network);

}  // namespace pliant::controller
