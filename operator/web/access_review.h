#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/http_server.h"
#include "operator/kube/client.h"

namespace pliant::web {

// Whether a text has the form of a bearer token (RFC 6750) and a length that one may have.
bool IsBearerToken(std::string_view text);

nlohmann::json TokenReviewOf(std::string_view token);
// The user, as the server has it; null when it does not know the token, or not any more.
kube::KubeResult<nlohmann::json> UserOf(const nlohmann::json& token_review);

// Whether that user may GET this path, which is none of a resource.
nlohmann::json SubjectAccessReviewOf(const nlohmann::json& user, std::string_view path);
kube::KubeResult<bool> IsAllowed(const nlohmann::json& access_review);

// Asks the API server whose token it is, and whether they may GET `path`: what controller-runtime's
// WithAuthenticationAndAuthorization asks. Blocks for as long as the client's deadlines let it.
kube::KubeResult<Access> ReviewAccess(kube::KubeClient& client, std::string_view token,
                                      std::string_view path);

}  // namespace pliant::web
