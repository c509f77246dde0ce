#include "operator/controller/rounds/provisioning_changes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/earliest.h"

namespace pliant::controller {

ProvisioningChanges ChangeProvisioningRequests(std::span<const RequestedNodes> wanted,
                                               std::span<const ProvisioningState> present,
                                               api::WallTime now, const ProvisioningPace& pace) {
  std::map<std::string_view, std::string> names;  // of wanted ones, by job
  for (const RequestedNodes& nodes : wanted) names[nodes.job.uid] = ProvisioningRequestName(nodes);
  std::set<std::string_view> served;  // jobs
  ProvisioningChanges changes;
  for (const ProvisioningState& request : present) {
    const auto job = names.find(request.job_uid);
    if (job == names.end()) {
      changes.remove.push_back({request.name, request.uid});
      continue;
    }
    const bool fits = job->second == request.name;
    if (fits && request.over.empty()) {
      served.insert(job->first);
      continue;
    }
    // The server's clock may be ahead.
    const api::WallTime due =
        std::min(request.created, now) + (request.over.empty() ? pace.settles : pace.retries);
    if (now < due) {
      served.insert(job->first);
      KeepEarliest(due, changes.look_again);
      continue;
    }
    changes.remove.push_back({request.name, request.uid});
    // An object of the same name can be created only once this one has gone.
    if (fits) served.insert(job->first);
  }
  for (const RequestedNodes& nodes : wanted) {
    if (!served.contains(nodes.job.uid)) changes.create.push_back(&nodes);
  }
  return changes;
}

}  // namespace pliant::controller
