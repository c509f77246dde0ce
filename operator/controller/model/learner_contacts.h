#pragma once

#include <optional>
#include <set>
#include <string>

#include "operator/api/time.h"

namespace pliant::controller {

struct JobView;

// Which learners the job's coordinator knows, by the uids of their pods.
struct LearnerContacts {
  std::set<std::string> named;  // exist, and the coordinator has named them: it has spoken to them
  // The same, and those that ran when this program saw the job first, which had trained before.
  std::set<std::string> met;
  std::set<std::string> gone;                // it still names them, and they are known to be gone
  std::optional<api::WallTime> searched_at;  // when the server was last asked about pods
  bool operator==(const LearnerContacts&) const = default;
};

// `first_look`: this program sees the job for the first time.
void ObserveContacts(const JobView& view, bool first_look, LearnerContacts& contacts);
// The server was asked, and does not have the pod.
void OnPodGone(const std::string& uid, LearnerContacts& contacts);

}  // namespace pliant::controller
