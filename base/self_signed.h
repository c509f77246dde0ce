#pragma once

#include <chrono>
#include <string>

#include "base/http_server.h"
#include "base/result.h"

namespace pliant {

// Makes a new key and a self-signed certificate for `host`. The traffic is encrypted, but the
// client needs another way to verify the server. Valid for ten years from one day before `now`.
Result<TlsPem> MakeSelfSigned(const std::string& host, std::chrono::sys_seconds now);

}  // namespace pliant
