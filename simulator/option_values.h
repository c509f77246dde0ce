#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "simulator/events/run_options.h"

// Values of options. Every error is a sentence with its remedy: "is often; write live or
// restart:30".
namespace pliant::simulator {

// "live" or "restart:30": seconds.
Result<std::variant<LiveResizing, Restarting>> ParseResize(std::string_view text);

// Whole seconds, as milliseconds.
Result<std::int64_t> ParseEvery(std::string_view text);

// "mtbf=6h,repair=10m"; the time of a repair may be left out.
Result<Failures> ParseFailures(std::string_view text);

}  // namespace pliant::simulator
