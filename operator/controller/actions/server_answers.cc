#include "operator/controller/actions/server_answers.h"

#include <cstddef>

#include "base/format.h"

namespace pliant::controller {

// The only sign of it is the server's message, "... exceeded quota: NAME, requested:
// requests.nvidia.com/gpu=1, used: ..., limited: ...", which lists what is exceeded.
bool LacksGpusOfQuota(const kube::KubeError& error, std::string_view gpu_resource) {
  if (error.http_status != 403 || !error.message.contains("exceeded quota: ")) return false;
  const std::string begin = Format("requested: requests.{}=", gpu_resource);
  const std::size_t at = error.message.find(begin);
  if (at == std::string::npos) return false;
  const std::size_t end = error.message.find(',', at);
  return end != std::string::npos && error.message.compare(end, 7, ", used:") == 0;
}

bool RefusesPod(const kube::KubeError& error) {
  return error.http_status != 0 && (kube::IsRefusal(error) || IsGone(error));
}

std::string WhyUnanswered(std::string_view undone, const kube::KubeError& error) {
  if (error.http_status == 500) return error.message;
  if (error.code != ErrorCode::kTimeout) return "";
  return Format(
      "the API server did not {} in time, perhaps because an admission webhook does not answer: {}",
      undone, error.message);
}

bool LeavesUnknown(const kube::KubeError& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kInternal;
}

bool ReportsNothing(const kube::KubeError& error) {
  const bool not_understood = error.code == ErrorCode::kInvalid && error.http_status == 0;
  return error.code != ErrorCode::kNotFound && error.code != ErrorCode::kCancelled &&
         !not_understood;
}

bool IsGone(const kube::KubeError& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kConflict;
}

}  // namespace pliant::controller
