#include "operator/api/spec_and_status.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace pliant::api {
namespace {

constexpr std::size_t kMaxProblemBytes = 512;

std::string ProblemOf(const Fields& half) {
  return half.error() ? CutAtCharacter(half.error()->message, kMaxProblemBytes) : "";
}

}  // namespace

UnreadableHalves ReadSpecAndStatus(const nlohmann::json& object,
                                   const std::function<void(Fields&)>& read_spec,
                                   const std::function<void(Fields&)>& read_status) {
  Fields status(object);
  status.Object("status", read_status);
  Fields spec(object);
  if (!spec.Has("spec")) spec.Wrong("spec", "missing");
  spec.Object("spec", read_spec);
  return {.spec = ProblemOf(spec), .status = ProblemOf(status)};
}

}  // namespace pliant::api
