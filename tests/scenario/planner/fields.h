#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

// Reads YAML so strictly that a typo is an error.
namespace pliant::planner {

// A scenario that cannot be understood. The line is 1 for the first one.
struct Mistake : std::runtime_error {
  Mistake(const YAML::Node& node, const std::string& message)
      : std::runtime_error(message), line(node.Mark().line + 1) {}
  int line;
};

template <typename T>
T ValueOf(const YAML::Node& node, const std::string& what) {
  try {
    return node.as<T>();
  } catch (const YAML::BadConversion&) {
    throw Mistake(node, what + " cannot be '" + YAML::Dump(node) + "'");
  }
}

// A mapping whose keys must all be read: call Done after that.
class Fields {
 public:
  // `what` it is, for messages: "job nightly".
  Fields(const YAML::Node& node, std::string what);

  std::optional<YAML::Node> Take(const std::string& key);
  template <typename T>
  std::optional<T> Read(const std::string& key) {
    const std::optional<YAML::Node> node = Take(key);
    if (!node) return std::nullopt;
    return ValueOf<T>(*node, key + " of " + what_);
  }
  // Leaves `value` as it is if there is no such key.
  template <typename T, typename To>
  void ReadTo(const std::string& key, To& value) {
    if (const auto read = Read<T>(key)) value = *read;
  }
  // The index of the word that the key has.
  std::optional<int> ReadWord(const std::string& key, std::span<const std::string_view> words);

  void Done() const;  // throws Mistake at a key that nobody has taken

 private:
  const YAML::Node node_;
  const std::string what_;
  std::set<std::string> taken_;
};

// Calls `each` for the entries of a mapping, in their order.
void ForEach(const std::optional<YAML::Node>& node, const std::string& what,
             const std::function<void(const std::string& name, const YAML::Node& value)>& each);

// "4..16", or "4" for both.
struct Range {
  int min = 0;
  int max = 0;
};
Range ReadRange(const YAML::Node& node);

}  // namespace pliant::planner
