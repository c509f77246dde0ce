#pragma once

#include <cmath>
#include <optional>

#include "operator/api/fields.h"

namespace pliant::api {

// A number that is not finite counts as unknown: NaN would differ from itself on each comparison.
inline std::optional<double> FiniteNumber(Fields& fields, const char* name) {
  const std::optional<double> number = fields.OptionalNumber(name);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace pliant::api
