#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tests/kube/schema.h"

// What an API server does to objects of the kinds that it knows itself, as far as the operator can
// tell.
namespace pliant::kube {

// Secrets keep their text as base64.
void EncodeSecret(nlohmann::json& secret);
std::string TextInSecret(const nlohmann::json& secret, const std::string& name);

std::optional<WrongField> FindWrongFieldOfPod(const nlohmann::json& pod);
// Of a pod's spec only the gates may change, and only by going.
std::optional<WrongField> FindForbiddenChangeOfPod(const nlohmann::json& before,
                                                   const nlohmann::json& after);

// How long a pod that is deleted now lives on: what no kubelet has, and what has ended, goes at
// once.
int GraceOf(const nlohmann::json& pod, std::optional<int> asked);

}  // namespace pliant::kube
