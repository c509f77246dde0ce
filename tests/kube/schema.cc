#include "tests/kube/schema.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

bool IsOfType(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return true;
}

// Checks the value itself, not its parts; "" if it is valid.
std::string WhatIsWrong(const json& schema, const json& value) {
  if (const std::string type = schema.value("type", ""); !IsOfType(value, type)) {
    return Format("must be of type {}", type);
  }
  if (value.is_number()) {
    if (schema.contains("minimum") && value < schema["minimum"]) {
      return "should be greater than or equal to " + schema["minimum"].dump();
    }
    if (schema.contains("maximum") && value > schema["maximum"]) {
      return "should be less than or equal to " + schema["maximum"].dump();
    }
  }
  const auto within = [&](std::size_t size, const char* least, const char* most) {
    return size >= schema.value(least, std::size_t{0}) && size <= schema.value(most, SIZE_MAX);
  };
  if (value.is_string() &&
      !within(value.get_ref<const std::string&>().size(), "minLength", "maxLength")) {
    return "is too short or too long";
  }
  if (value.is_object() && !within(value.size(), "minProperties", "maxProperties")) {
    return "has too few or too many properties";
  }
  if (value.is_array() && !within(value.size(), "minItems", "maxItems")) {
    return "has too few or too many items";
  }
  if (schema.contains("enum") && !std::ranges::contains(schema["enum"], value)) {
    return "supported values: " + schema["enum"].dump();
  }
  return "";
}

}  // namespace

void PruneAndDefault(const json& schema, json& value) {
  if (value.is_array() && schema.contains("items")) {
    for (json& item : value) PruneAndDefault(schema["items"], item);
  }
  if (!value.is_object() || !schema.contains("properties")) return;
  const json& properties = schema["properties"];
  if (!schema.value("x-kubernetes-preserve-unknown-fields", false)) {
    for (auto field = value.begin(); field != value.end();) {
      field = properties.contains(field.key()) && !field->is_null() ? std::next(field)
                                                                    : value.erase(field);
    }
  }
  for (const auto& [name, property] : properties.items()) {
    if (!value.contains(name) && property.contains("default")) value[name] = property["default"];
    if (value.contains(name)) PruneAndDefault(property, value[name]);
  }
}

std::optional<WrongField> FindWrongField(const json& schema, const json& value, const json* before,
                                         const std::string& path) {
  if (before != nullptr && *before == value) return std::nullopt;
  const auto inner = [&](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  if (const std::string why = WhatIsWrong(schema, value); !why.empty()) {
    return WrongField{path, why};
  }
  if (value.is_object()) {
    for (const json& name : schema.value("required", json::array())) {
      if (!value.contains(name)) return WrongField{inner(name), "Required value"};
    }
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, field] : value.items()) {
      const auto property = properties.find(name);
      const auto any = schema.find("additionalProperties");
      if (property == properties.end() && any == schema.end()) continue;
      const json& of_field = property == properties.end() ? *any : *property;
      const bool was_there = before != nullptr && before->is_object() && before->contains(name);
      const json* field_before = was_there ? &(*before)[name] : nullptr;
      if (auto wrong = FindWrongField(of_field, field, field_before, inner(name))) return wrong;
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string item = Format("{}[{}]", path, i);
      if (auto wrong = FindWrongField(schema["items"], value[i], nullptr, item)) return wrong;
    }
  }
  return std::nullopt;
}

}  // namespace pliant::kube
