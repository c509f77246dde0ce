#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/http_server.h"
#include "operator/kube/client.h"

namespace pliant::web {

// Whether a text has the form of a bearer token (RFC 6750) and an allowed length.
bool IsBearerToken(std::string_view text);

nlohmann::json TokenReviewOf(std::string_view token);
// The user as the server returned it; null if the server does not know the token (any longer).
kube::KubeResult<nlohmann::json> UserOf(const nlohmann::json& token_review);

// Reviews whether that user may GET this non-resource path.
nlohmann::json SubjectAccessReviewOf(const nlohmann::json& user, std::string_view path);
kube::KubeResult<bool> IsAllowed(const nlohmann::json& access_review);

// Asks the API server whose token it is and whether that user may GET `path`, as
// controller-runtime's WithAuthenticationAndAuthorization does. Blocks for at most the client's
// deadlines.
kube::KubeResult<Access> ReviewAccess(kube::KubeClient& client, std::string_view token,
                                      std::string_view path);

}  // namespace pliant::web
