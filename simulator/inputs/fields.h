#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "operator/replay/describe.h"
#include "simulator/inputs/values.h"
#include "simulator/inputs/yaml_value.h"

namespace pliant::simulator {

// A mapping of a YAML file, read so strictly that a typo is an error. Errors name file and line:
// "a.yaml:17: 'weight' of queue research is 0; write a whole number from 1 to 10000".
class Fields {
 public:
  // `what` it is, for errors: "queue research". A key that is not `known` is an error. `file` and
  // `value` outlive the reader.
  static Result<Fields> Open(std::string_view file, const YamlValue& value, std::string what,
                             std::span<const std::string_view> known);

  // Null: there is no such key.
  const YamlValue* Find(std::string_view key) const;
  // `example`: how to write the key, for the error.
  Result<const YamlValue*> Required(std::string_view key, std::string_view example) const;

  // These return `fallback` if there is no such key.
  Result<std::int64_t> Whole(std::string_view key, std::int64_t fallback,
                             replay::Bounds bounds) const;
  Result<std::optional<std::int64_t>> OptionalWhole(std::string_view key,
                                                    replay::Bounds bounds) const;
  Result<std::optional<std::int64_t>> OptionalMillis(std::string_view key,
                                                     std::int64_t min = 0) const;
  template <typename Enum>
  Result<Enum> Word(std::string_view key, Enum fallback, Enum last) const {
    const YamlValue* const value = Find(key);
    if (value == nullptr) return fallback;
    return InField(*value, ParseWord(TextOf(*value), last));
  }

  Result<std::int64_t> Millis(std::string_view key, std::string_view example,
                              std::int64_t min = 0) const;
  Result<std::string> Name(std::string_view key, std::string_view example) const;

  // Errors: at the key's value, of the mapping itself.
  std::unexpected<Error> Wrong(std::string_view key, std::string_view sentence) const;
  std::unexpected<Error> Wrong(std::string_view sentence) const;

  const std::string& what() const { return what_; }

 private:
  Fields(std::string_view file, const YamlValue& value, std::string what)
      : file_(file), value_(&value), what_(std::move(what)) {}

  // The text that parsers get, and that their errors show.
  static std::string TextOf(const YamlValue& value);
  template <typename T>
  Result<T> InField(const YamlValue& value, Result<T> parsed) const {
    if (parsed) return parsed;
    return WrongAt(file_, value.line,
                   Format("'{}' of {} {}", value.key, what_, parsed.error().message));
  }

  std::string_view file_;
  const YamlValue* value_;
  std::string what_;
};

// The items of a list. `what`: "nodes"; `example`: an item. At most `max_items`.
Result<std::span<const YamlValue>> ItemsOf(std::string_view file, const YamlValue& value,
                                           std::string_view what, std::string_view example,
                                           std::size_t max_items);

}  // namespace pliant::simulator
