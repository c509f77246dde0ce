#include "tests/kube/selectors.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string_view>

namespace pliant::kube {
namespace {

using nlohmann::json;

// Returns the value of the label or field with this name.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

bool Holds(std::string_view term, const Lookup& lookup) {
  const std::size_t equals = term.find('=');
  if (equals == std::string_view::npos) {
    const bool absent = term.starts_with('!');
    return lookup(std::string(term.substr(absent ? 1 : 0))).has_value() != absent;
  }
  const bool differs = equals > 0 && term[equals - 1] == '!';
  const std::string name(term.substr(0, differs ? equals - 1 : equals));
  std::string_view value = term.substr(equals + 1);
  if (value.starts_with('=')) value.remove_prefix(1);
  return (lookup(name) == std::string(value)) != differs;
}

bool Matches(const std::string& selector, const Lookup& lookup) {
  if (selector.empty()) return true;
  return std::ranges::all_of(std::views::split(selector, ','), [&](auto term) {
    return Holds(std::string_view(term.begin(), term.end()), lookup);
  });
}

}  // namespace

bool MatchesLabels(const json& object, const std::string& selector) {
  return Matches(selector, [&](const std::string& name) -> std::optional<std::string> {
    const json& metadata = object.at("metadata");
    const auto labels = metadata.find("labels");
    if (labels == metadata.end() || !labels->contains(name)) return std::nullopt;
    return labels->at(name).get<std::string>();
  });
}

bool MatchesFields(const json& object, const std::string& selector) {
  return Matches(selector, [&](const std::string& name) -> std::optional<std::string> {
    std::string pointer = "/" + name;
    std::ranges::replace(pointer, '.', '/');
    // A field that is absent equals the empty string.
    return object.value(json::json_pointer(pointer), "");
  });
}

}  // namespace pliant::kube
