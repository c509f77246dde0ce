#include "operator/web/access_review.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/kube/json_fields.h"

namespace pliant::web {
namespace {

using nlohmann::json;

constexpr kube::ResourceType kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews",
                                           "TokenReview", false};
constexpr kube::ResourceType kSubjectAccessReviews{
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", false};
constexpr std::size_t kMaxTokenBytes = 8192;

bool IsTrue(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// Null if the review has no status: the server did not decide.
const json* StatusIn(const json& review) {
  const auto found = review.is_object() ? review.find("status") : review.end();
  return found != review.end() && found->is_object() ? &*found : nullptr;
}

std::unexpected<kube::KubeError> NotDecided(const char* why) {
  return std::unexpected(kube::KubeError(ErrorCode::kInternal, why));
}

}  // namespace

bool IsBearerToken(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/=").contains(c);
  };
  return !text.empty() && text.size() <= kMaxTokenBytes && std::ranges::all_of(text, is_part);
}

json TokenReviewOf(std::string_view token) { return {{"spec", {{"token", token}}}}; }

kube::KubeResult<json> UserOf(const json& token_review) {
  const json* const status = StatusIn(token_review);
  if (status == nullptr) return NotDecided("the TokenReview has no status");
  if (!IsTrue(*status, "authenticated")) return json();
  const auto user = status->find("user");
  const bool named =
      user != status->end() && user->is_object() && !kube::StringAt(*user, "username").empty();
  if (!named) return NotDecided("the TokenReview names no user");
  return *user;
}

json SubjectAccessReviewOf(const json& user, std::string_view path) {
  json spec = {{"user", kube::StringAt(user, "username")},
               {"uid", kube::StringAt(user, "uid")},
               {"nonResourceAttributes", {{"path", path}, {"verb", "get"}}}};
  for (const char* name : {"groups", "extra"}) {
    if (const auto found = user.find(name); found != user.end()) spec[name] = *found;
  }
  return {{"spec", std::move(spec)}};
}

kube::KubeResult<bool> IsAllowed(const json& access_review) {
  const json* const status = StatusIn(access_review);
  if (status == nullptr) return NotDecided("the SubjectAccessReview has no status");
  return IsTrue(*status, "allowed") && !IsTrue(*status, "denied");
}

kube::KubeResult<Access> ReviewAccess(kube::KubeClient& client, std::string_view token,
                                      std::string_view path) {
  ASSIGN_OR_RETURN(const json token_review, client.Create(kTokenReviews, TokenReviewOf(token)));
  ASSIGN_OR_RETURN(const json user, UserOf(token_review));
  if (user.is_null()) return Access::kUnknown;
  ASSIGN_OR_RETURN(const json access_review,
                   client.Create(kSubjectAccessReviews, SubjectAccessReviewOf(user, path)));
  ASSIGN_OR_RETURN(const bool allowed, IsAllowed(access_review));
  return allowed ? Access::kGranted : Access::kForbidden;
}

}  // namespace pliant::web
