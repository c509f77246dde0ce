#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tests/kube/schema.h"

// How an API server treats objects of built-in kinds, as far as it matters to the operator.
namespace pliant::kube {

// Moves `stringData` to `data` as base64.
void EncodeSecret(nlohmann::json& secret);

std::optional<WrongField> FindWrongFieldOfPod(const nlohmann::json& pod);
// Only the scheduling gates in a pod's spec may change, and they may only be removed.
std::optional<WrongField> FindForbiddenChangeOfPod(const nlohmann::json& before,
                                                   const nlohmann::json& after);

// The grace period in seconds of a pod that is deleted now: 0 for a pod that no kubelet has or that
// has ended.
int GraceOf(const nlohmann::json& pod, std::optional<int> asked);

}  // namespace pliant::kube
