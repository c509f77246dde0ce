#pragma once

#include <chrono>
#include <string>

#include "base/http_server.h"
#include "base/result.h"

namespace pliant {

// A new key and a certificate for `host` that it signs itself: what is sent is encrypted, and the
// client has to know otherwise whom it talks to. Valid for ten years from a day before `now`.
Result<TlsPem> MakeSelfSigned(const std::string& host, std::chrono::sys_seconds now);

}  // namespace pliant
