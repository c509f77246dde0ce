#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant::api {

// Wall time as API objects carry it. Compare it with other API times only, never with a loop's
// clock.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

// "2026-01-02T03:04:05Z", with or without a fraction or an offset. Fractions are cut to
// milliseconds.
Result<WallTime> ParseTime(std::string_view text);
// The RFC 9110 form that servers send: "Sun, 06 Nov 1994 08:49:37 GMT".
Result<WallTime> ParseHttpDate(std::string_view text);
// Whole seconds, as metav1.Time has them.
std::string FormatTime(WallTime time);
// `seconds` is finite and may come from an untrusted source: a value outside the years 1970 to 9999
// becomes the nearest time within.
WallTime FromUnixSeconds(double seconds);

}  // namespace pliant::api
