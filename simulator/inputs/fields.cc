#include "simulator/inputs/fields.h"

#include <algorithm>

#include "base/format.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {

Result<Fields> Fields::Open(std::string_view file, const YamlValue& value, std::string what,
                            std::span<const std::string_view> known) {
  std::string names;
  for (const std::string_view each : known) names.append(names.empty() ? "" : ", ").append(each);
  if (value.kind != YamlKind::kMapping) {
    return WrongAt(file, value.line,
                   Format("{} is {}; write a mapping with {}", what, Shown(value), names));
  }
  for (const YamlValue& each : value.items) {
    if (std::ranges::contains(known, each.key)) continue;
    return WrongAt(file, each.key_line,
                   Format("{} has the unknown key '{}'; use {}", what,
                          Shown(std::string_view(each.key)), names));
  }
  return Fields(file, value, std::move(what));
}

const YamlValue* Fields::Find(std::string_view key) const {
  const auto at = std::ranges::find(value_->items, key, &YamlValue::key);
  return at == value_->items.end() ? nullptr : &*at;
}

Result<const YamlValue*> Fields::Required(std::string_view key, std::string_view example) const {
  if (const YamlValue* const value = Find(key)) return value;
  return Wrong(Format("{} has no '{}'; add it, for example {}: {}", what_, key, key, example));
}

Result<std::int64_t> Fields::Whole(std::string_view key, std::int64_t fallback,
                                   replay::Bounds bounds) const {
  const YamlValue* const value = Find(key);
  if (value == nullptr) return fallback;
  return InField(*value, ParseWhole(TextOf(*value), bounds));
}

Result<std::optional<std::int64_t>> Fields::OptionalWhole(std::string_view key,
                                                          replay::Bounds bounds) const {
  if (Find(key) == nullptr) return std::nullopt;
  return Whole(key, 0, bounds);
}

Result<std::optional<std::int64_t>> Fields::OptionalMillis(std::string_view key,
                                                           std::int64_t min) const {
  if (Find(key) == nullptr) return std::nullopt;
  return Millis(key, "", min);
}

Result<std::int64_t> Fields::Millis(std::string_view key, std::string_view example,
                                    std::int64_t min) const {
  ASSIGN_OR_RETURN(const YamlValue* const value, Required(key, example));
  return InField(*value, ParseMillis(TextOf(*value), min));
}

Result<std::string> Fields::Name(std::string_view key, std::string_view example) const {
  ASSIGN_OR_RETURN(const YamlValue* const value, Required(key, example));
  const std::string text = TextOf(*value);
  if (IsName(text)) return text;
  return Wrong(
      key, Format("is {}; write 1 to {} letters, digits and -_.", Shown(*value), kMaxNameBytes));
}

std::unexpected<Error> Fields::Wrong(std::string_view key, std::string_view sentence) const {
  const YamlValue* const value = Find(key);
  return WrongAt(file_, value == nullptr ? value_->line : value->line,
                 Format("'{}' of {} {}", key, what_, sentence));
}

std::unexpected<Error> Fields::Wrong(std::string_view sentence) const {
  return WrongAt(file_, value_->line, sentence);
}

std::string Fields::TextOf(const YamlValue& value) {
  return value.kind == YamlKind::kText ? value.text : Shown(value);
}

Result<std::span<const YamlValue>> ItemsOf(std::string_view file, const YamlValue& value,
                                           std::string_view what, std::string_view example,
                                           std::size_t max_items) {
  if (value.kind != YamlKind::kList || value.items.empty()) {
    return WrongAt(file, value.line,
                   Format("'{}' is {}; write a list of at least one, for example [{}]", what,
                          value.kind == YamlKind::kList ? "empty" : Shown(value), example));
  }
  if (value.items.size() > max_items) {
    return WrongAt(
        file, value.items[max_items].line,
        Format("'{}' has {} items; write at most {}", what, value.items.size(), max_items));
  }
  return value.items;
}

}  // namespace pliant::simulator
