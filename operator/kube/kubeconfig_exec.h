#pragma once

#include <string>

#include "base/result.h"
#include "operator/kube/config.h"
#include "operator/kube/exec_plugin.h"

namespace YAML {
class Node;
}

namespace pliant::kube {

// users[].user.exec of a kubeconfig that lies in `folder`; `cluster` is the entry of the cluster to
// which `config` leads. kInvalid names the field.
Result<ExecPlugin> ParseExec(const YAML::Node& exec, const YAML::Node& cluster,
                             const Config& config, const std::string& folder);

}  // namespace pliant::kube
