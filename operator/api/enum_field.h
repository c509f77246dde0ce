#pragma once

#include <ranges>
#include <string>

#include "operator/api/fields.h"

namespace pliant::api {

// Reads one of `values` by its ToString; `fallback` if the field is absent or wrong.
template <typename Enum, std::ranges::input_range Values>
Enum ReadEnum(Fields& fields, const char* name, Enum fallback, const Values& values) {
  const std::string text = fields.String(name, std::string(ToString(fallback)));
  std::string known;
  for (const Enum value : values) {
    if (ToString(value) == text) return value;
    known += known.empty() ? "" : ", ";
    known += ToString(value);
  }
  fields.Wrong(name, "none of " + known);
  return fallback;
}

}  // namespace pliant::api
