#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "operator/api/meta.h"

namespace pliant::api {

struct Service {
  ObjectMeta meta;  // with the labels of pliant.dev
  std::string cluster_ip;
  std::map<std::string, std::string> selector;

  bool operator==(const Service&) const = default;
};

Result<Service> DecodeService(const nlohmann::json& object);

}  // namespace pliant::api
