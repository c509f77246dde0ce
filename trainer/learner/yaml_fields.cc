#include "trainer/learner/yaml_fields.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/format.h"
#include "trainer/learner/closest_word.h"

namespace pliant::learner {
namespace {

std::string_view KindOfNode(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return "a value";
}

std::string Joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    text += Format("{}{}", text.empty() ? "" : ", ", word);
  }
  return text;
}

// The elements of a list, or a single value given instead of a list.
std::vector<YAML::Node> ElementsOf(const YAML::Node& node, std::string_view name) {
  if (!node.IsSequence()) return {node};
  if (node.size() == 0) {
    throw Wrong{node.Mark(), Format("{}: expected at least one, not an empty list", name)};
  }
  return {node.begin(), node.end()};
}

}  // namespace

std::string Quoted(const YAML::Node& node) {
  if (node.IsScalar()) return Format("'{}'", node.Scalar());
  return node.IsNull() ? "nothing" : std::string(KindOfNode(node));
}

std::string Unknown(std::string_view what, std::string_view typed,
                    std::span<const std::string_view> known) {
  if (const auto closest = ClosestWord(typed, known)) {
    return Format("unknown {} '{}': did you mean '{}'?", what, typed, *closest);
  }
  return Format("unknown {} '{}': expected one of {}", what, typed, Joined(known));
}

std::int64_t ReadWhole(const YAML::Node& node, std::string_view name, WholeRange range) {
  std::int64_t value = 0;
  if (!node.IsScalar() || !YAML::convert<std::int64_t>::decode(node, value) ||
      value < range.least || value > range.most) {
    throw Wrong{node.Mark(), Format("{}: expected a whole number of {} to {}, not {}", name,
                                    range.least, range.most, Quoted(node))};
  }
  return value;
}

double ReadReal(const YAML::Node& node, std::string_view name, RealRange range) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) ||
      value < range.least || (range.above && value == range.least) || value >= range.below) {
    throw Wrong{node.Mark(), Format("{}: expected a number {} {:g} and below {:g}, not {}", name,
                                    range.above ? "above" : "of at least", range.least, range.below,
                                    Quoted(node))};
  }
  return value;
}

bool ReadBool(const YAML::Node& node, std::string_view name) {
  bool value = false;
  if (!node.IsScalar() || !YAML::convert<bool>::decode(node, value)) {
    throw Wrong{node.Mark(), Format("{}: expected true or false, not {}", name, Quoted(node))};
  }
  return value;
}

std::string ReadText(const YAML::Node& node, std::string_view name) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    throw Wrong{node.Mark(), Format("{}: expected a text, not {}", name, Quoted(node))};
  }
  return node.Scalar();
}

std::vector<double> ReadReals(const YAML::Node& node, std::string_view name, RealRange range) {
  std::vector<double> values;
  for (const YAML::Node& element : ElementsOf(node, name)) {
    values.push_back(ReadReal(element, name, range));
  }
  return values;
}

std::vector<std::string> ReadTexts(const YAML::Node& node, std::string_view name) {
  std::vector<std::string> texts;
  for (const YAML::Node& element : ElementsOf(node, name)) {
    texts.push_back(ReadText(element, name));
  }
  return texts;
}

std::size_t ReadWord(const YAML::Node& node, std::string_view name, std::string_view what,
                     std::span<const std::string_view> words) {
  const std::string word = ReadText(node, name);
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) {
    throw Wrong{node.Mark(), Format("{}: {}", name, Unknown(what, word, words))};
  }
  return static_cast<std::size_t>(found - words.begin());
}

Mapping::Mapping(const YAML::Node& node, std::string path, std::span<const std::string_view> known)
    : node_(node), path_(std::move(path)) {
  if (!node.IsMap()) {
    throw Wrong{node.Mark(), Format("{}: expected a mapping with {}, not {}",
                                    path_.empty() ? "model" : path_, Joined(known), Quoted(node))};
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::ranges::find(known, key) == known.end()) {
      throw Wrong{entry.first.Mark(), In(Unknown("key", key, known))};
    }
    if (!seen.insert(key).second) throw Wrong{entry.first.Mark(), In(key + " is given twice")};
  }
}

YAML::Node Mapping::Required(std::string_view key) const {
  const YAML::Node node = Find(key);
  if (!node) throw Wrong{node_.Mark(), In(Format("{} is missing", key))};
  return node;
}

std::string Mapping::In(std::string_view message) const {
  return path_.empty() ? std::string(message) : Format("{}: {}", path_, message);
}

}  // namespace pliant::learner
