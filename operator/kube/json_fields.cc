#include "operator/kube/json_fields.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace pliant::kube {

std::string StringAt(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int IntAt(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return 0;
  const auto number = found->get<std::int64_t>();
  return std::in_range<int>(number) ? static_cast<int>(number) : 0;
}

}  // namespace pliant::kube
