#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/time.h"
#include "operator/controller/model/learner_clocks.h"

namespace pliant::controller {

// Why a pod's volumes cannot be mounted.
struct MountCause {
  std::string text;  // the kubelet's message; empty: none so far
  api::WallTime asked;
  bool operator==(const MountCause&) const = default;
};
using MountCauses = std::map<std::string, MountCause>;  // by pod name

// Keeps only the causes of learners that are starting.
void ForgetMounted(const LearnerClocks& clocks, MountCauses& causes);

// The events of the pod were read, and give `text` as the cause; "": none.
void OnMountCause(const std::string& pod, std::string text, api::WallTime now, MountCauses& causes);

// The newest and most specific message on why a pod's volumes cannot be mounted, or why it gets no
// network, among the events (events.k8s.io/v1) of that pod; "" if there is none.
std::string MountCauseIn(const std::vector<nlohmann::json>& events);

}  // namespace pliant::controller
