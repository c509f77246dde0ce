#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace pliant::api {

// A Kubernetes quantity such as "500m", "2", "1.5Gi" or "1e3", in units, rounded up. A value that
// does not fit becomes the largest one that does. kInvalid for anything else, including negative
// values.
Result<std::int64_t> ParseQuantity(std::string_view text);
// The same in thousandths: "500m" is 500.
Result<std::int64_t> ParseQuantityMillis(std::string_view text);

}  // namespace pliant::api
