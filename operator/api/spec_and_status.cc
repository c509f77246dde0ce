#include "operator/api/spec_and_status.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace pliant::api {
namespace {

constexpr std::size_t kMaxProblemBytes = 512;

}  // namespace

Result<std::string> ReadSpecAndStatus(const nlohmann::json& object,
                                      const std::function<void(Fields&)>& read_spec,
                                      const std::function<void(Fields&)>& read_status) {
  Fields root(object);
  root.Object("status", read_status);
  if (root.error()) return std::unexpected(*root.error());
  if (!root.Has("spec")) root.Wrong("spec", "missing");
  root.Object("spec", read_spec);
  return root.error() ? CutAtCharacter(root.error()->message, kMaxProblemBytes) : "";
}

}  // namespace pliant::api
