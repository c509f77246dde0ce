#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "operator/api/fields.h"

namespace pliant::api {

// Reads one of `values` by its ToString; the first is the default.
template <typename Enum, std::size_t kCount>
Enum ReadEnum(Fields& fields, const char* name, const std::array<Enum, kCount>& values) {
  const std::string text = fields.String(name, std::string(ToString(values.front())));
  std::string known;
  for (const Enum value : values) {
    if (ToString(value) == text) return value;
    known += known.empty() ? "" : ", ";
    known += ToString(value);
  }
  fields.Wrong(name, "none of " + known);
  return values.front();
}

}  // namespace pliant::api
