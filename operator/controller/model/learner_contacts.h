#pragma once

#include <optional>
#include <set>
#include <string>

#include "operator/api/time.h"

namespace pliant::controller {

struct JobView;

// Which learners the job's coordinator knows, by the uids of their pods.
struct LearnerContacts {
  std::set<std::string> named;  // they exist, and the coordinator has reported them
  // As `named`, and learners that ran when this process first saw the job, if the job had trained
  // before.
  std::set<std::string> met;
  std::set<std::string> gone;                // still reported, but known to be gone
  std::optional<api::WallTime> searched_at;  // when the server was last asked about pods
  bool operator==(const LearnerContacts&) const = default;
};

// `first_look`: this process sees the job for the first time.
void ObserveContacts(const JobView& view, bool first_look, LearnerContacts& contacts);
// The API server was asked, and does not have the pod.
void OnPodGone(const std::string& uid, LearnerContacts& contacts);

}  // namespace pliant::controller
