#include "operator/api/service.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace pliant::api {

Result<Service> DecodeService(const nlohmann::json& object) {
  Service service;
  ASSIGN_OR_RETURN(service.meta, DecodeMeta(object, "pliant.dev/"));
  Fields root(object);
  root.Object("spec", [&](Fields& spec) {
    service.cluster_ip = spec.String("clusterIP", "", 64);
    service.selector = spec.Strings("selector", 64);
  });
  if (root.error()) return std::unexpected(*root.error());
  return service;
}

}  // namespace pliant::api
