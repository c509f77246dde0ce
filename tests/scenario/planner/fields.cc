#include "tests/scenario/planner/fields.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace pliant::planner {
namespace {

// yaml-cpp accepts a key twice, and one of the values would not count.
void CheckMapping(const YAML::Node& node, const std::string& what) {
  if (!node.IsMap()) throw Mistake(node, what + " must be a mapping");
  std::set<std::string> keys;
  for (const auto& entry : node) {
    if (!keys.insert(entry.first.Scalar()).second) {
      throw Mistake(entry.first, "'" + entry.first.Scalar() + "' is twice in " + what);
    }
  }
}

}  // namespace

Fields::Fields(const YAML::Node& node, std::string what) : node_(node), what_(std::move(what)) {
  CheckMapping(node_, what_);
}

std::optional<YAML::Node> Fields::Take(const std::string& key) {
  taken_.insert(key);
  const YAML::Node value = node_[key];
  if (!value) return std::nullopt;
  return value;
}

std::optional<int> Fields::ReadWord(const std::string& key,
                                    std::span<const std::string_view> words) {
  const std::optional<YAML::Node> node = Take(key);
  if (!node) return std::nullopt;
  const auto at = std::ranges::find(words, std::string_view(node->Scalar()));
  if (at != words.end()) return static_cast<int>(at - words.begin());
  std::string known;
  for (const std::string_view word : words) known.append(known.empty() ? "" : ", ").append(word);
  throw Mistake(
      *node, key + " of " + what_ + " cannot be '" + node->Scalar() + "': it is one of " + known);
}

void Fields::Done() const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (taken_.contains(key)) continue;
    std::string known;
    for (const std::string& each : taken_) known.append(known.empty() ? "" : ", ").append(each);
    throw Mistake(entry.first, "unknown key '" + key + "' in " + what_ + ": known are " + known);
  }
}

void ForEach(const std::optional<YAML::Node>& node, const std::string& what,
             const std::function<void(const std::string& name, const YAML::Node& value)>& each) {
  if (!node) return;
  CheckMapping(*node, what);
  for (const auto& entry : *node) each(entry.first.Scalar(), entry.second);
}

Range ReadRange(const YAML::Node& node) {
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  const std::size_t dots = text.find("..");
  const auto number = [&](std::string_view digits) {
    int read = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), read);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      throw Mistake(
          node, "'" + text + "' is no number of learners, such as 4, and no range, such as 4..16");
    }
    return read;
  };
  if (dots == std::string::npos) return {number(text), number(text)};
  return {number(std::string_view(text).substr(0, dots)),
          number(std::string_view(text).substr(dots + 2))};
}

}  // namespace pliant::planner
