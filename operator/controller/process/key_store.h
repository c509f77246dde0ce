#pragma once

#include <string>

#include "base/result.h"
#include "operator/controller/objects/credentials.h"
#include "operator/kube/client.h"

namespace pliant::controller {

// The operator's own Secret `pliant-keys` in its namespace.
inline constexpr std::string_view kKeysSecret = "pliant-keys";

// Reads the keys, or makes them where there are none yet. Blocking. kInvalid if the Secret holds
// something else: that is never overwritten, because running jobs trust what was there.
Result<MasterKeys> LoadOrMakeKeys(kube::KubeClient& client, const std::string& ns,
                                  api::WallTime now);

}  // namespace pliant::controller
