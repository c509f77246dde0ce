#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "operator/api/meta.h"
#include "operator/api/pod.h"

namespace pliant::api {

struct NodeTaint {
  std::string key;
  std::string value;
  std::string effect;

  bool operator==(const NodeTaint&) const = default;
};

struct Node {
  ObjectMeta meta;  // with all labels
  bool unschedulable = false;
  bool ready = false;
  std::vector<NodeTaint> taints;
  Resources allocatable;

  bool operator==(const Node&) const = default;
};

Result<Node> DecodeNode(const nlohmann::json& object, const std::string& gpu_resource);

}  // namespace pliant::api
