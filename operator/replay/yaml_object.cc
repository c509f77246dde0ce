#include "operator/replay/yaml_object.h"

#include <cstddef>
#include <nlohmann/json.hpp>

#include <yaml-cpp/yaml.h>

#include "base/format.h"
#include "base/yaml_json.h"

namespace pliant::replay {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxYamlBytes = 2 << 20;  // the API server accepts less

}  // namespace

Result<json> ObjectOfKind(const std::string& yaml, std::string_view kind) {
  if (yaml.size() > kMaxYamlBytes)
    return Invalid(Format("larger than {} MiB", kMaxYamlBytes >> 20));
  try {
    for (const YAML::Node& document : YAML::LoadAll(yaml)) {
      if (!document.IsMap() || !document["kind"] || !document["kind"].IsScalar()) continue;
      if (document["kind"].Scalar() == kind) return ToJson(document);
    }
  } catch (const YAML::Exception& error) {
    return Invalid(error.what());
  }
  return Invalid(Format("has no object of kind {}", kind));
}

}  // namespace pliant::replay
