#include "operator/api/fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace pliant::api {
namespace {

// Checks the parsed value, not the text: one list holds objects of many owners, and a deeply nested
// one must not affect the others.
bool IsDeeperThan(const nlohmann::json& value, int levels) {
  if (!value.is_structured()) return false;
  return levels == 0 || std::ranges::any_of(value, [levels](const nlohmann::json& item) {
           return IsDeeperThan(item, levels - 1);
         });
}

}  // namespace

Fields::Fields(const nlohmann::json& object, std::string path)
    : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    error_ = Error{ErrorCode::kInvalid, (path_.empty() ? "it" : path_) + ": not an object"};
  }
}

const nlohmann::json* Fields::Find(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::vector<std::string> Fields::Names() const {
  std::vector<std::string> names;
  if (!object_.is_object()) return names;
  for (const auto& [name, value] : object_.items()) names.push_back(name);
  return names;
}

void Fields::Wrong(const char* name, std::string_view why) {
  if (error_) return;
  const std::string path = path_.empty() ? name : path_ + "." + name;
  error_ = Error{ErrorCode::kInvalid, path + ": " + std::string(why)};
}

std::string Fields::String(const char* name, std::string fallback, std::size_t max_length) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return fallback;
  if (!value->is_string()) {
    Wrong(name, "not a string");
    return fallback;
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > max_length) {
    Wrong(name, "longer than " + std::to_string(max_length) + " bytes");
    return fallback;
  }
  return text;
}

std::string Fields::Sentence(const char* name, std::size_t max_bytes) {
  return CutAtCharacter(String(name, "", std::string::npos), max_bytes);
}

std::string Fields::StringOrNumber(const char* name, std::string fallback) {
  const nlohmann::json* value = Find(name);
  return value != nullptr && value->is_number() ? value->dump() : String(name, std::move(fallback));
}

bool Fields::Bool(const char* name, bool fallback) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Wrong(name, "neither true nor false");
  return fallback;
}

std::optional<std::int64_t> Fields::OptionalInt(const char* name, std::int64_t least,
                                                std::int64_t most) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const bool too_large =
      value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t(INT64_MAX);
  if (value->is_number_integer() && !too_large) {
    const auto number = value->get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  Wrong(name, "not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::int64_t Fields::Long(const char* name, std::int64_t fallback, std::int64_t least,
                          std::int64_t most) {
  return OptionalInt(name, least, most).value_or(fallback);
}

int Fields::Int(const char* name, int fallback, int least, int most) {
  return static_cast<int>(Long(name, fallback, least, most));
}

std::optional<double> Fields::OptionalNumber(const char* name) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  Wrong(name, "not a number");
  return std::nullopt;
}

std::optional<WallTime> Fields::OptionalTime(const char* name) {
  const std::string text = String(name);
  if (text.empty()) return std::nullopt;
  const Result<WallTime> time = ParseTime(text);
  if (time) return *time;
  Wrong(name, time.error().message);
  return std::nullopt;
}

std::vector<int> Fields::Ints(const char* name, int least, int most, std::size_t max_count) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return {};
  if (!value->is_array() || value->size() > max_count) {
    Wrong(name, "not a list of at most " + std::to_string(max_count));
    return {};
  }
  std::vector<int> numbers;
  for (const nlohmann::json& item : *value) {
    const auto number =
        item.is_number_integer() ? item.get<std::int64_t>() : std::int64_t{least} - 1;
    if (number < least || number > most) {
      Wrong(name, "has an item that is not a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most));
      return {};
    }
    numbers.push_back(static_cast<int>(number));
  }
  return numbers;
}

std::vector<std::string> Fields::StringList(const char* name, std::size_t max_count,
                                            std::size_t max_length) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return {};
  std::vector<std::string> texts;
  bool right = value->is_array() && value->size() <= max_count;
  if (right) {
    for (const nlohmann::json& item : *value) {
      right = right && item.is_string();
      if (right) texts.push_back(BoundedText(name, item, max_length));
    }
  }
  if (right) return texts;
  Wrong(name, "not a list of at most " + std::to_string(max_count) + " strings");
  return {};
}

std::map<std::string, std::string> Fields::Strings(const char* name, std::size_t max_count,
                                                   std::size_t max_length) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return {};
  std::map<std::string, std::string> texts;
  bool right = value->is_object() && value->size() <= max_count;
  if (right) {
    for (const auto& [key, item] : value->items()) {
      right = right && item.is_string();
      if (right) texts[BoundedText(name, key, max_length)] = BoundedText(name, item, max_length);
    }
  }
  if (right) return texts;
  Wrong(name, "not an object of at most " + std::to_string(max_count) + " strings");
  return {};
}

// `text` is a string; "" with an error if it is too long.
std::string Fields::BoundedText(const char* name, const nlohmann::json& text,
                                std::size_t max_length) {
  const auto& value = text.get_ref<const std::string&>();
  if (value.size() <= max_length) return value;
  Wrong(name, "has a string longer than " + std::to_string(max_length) + " bytes");
  return "";
}

void Fields::Object(const char* name, const std::function<void(Fields&)>& read) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return;
  Fields fields(*value, path_.empty() ? name : path_ + "." + name);
  if (value->is_object()) read(fields);
  if (!error_) error_ = fields.error_;
}

void Fields::Objects(const char* name, std::size_t max_count,
                     const std::function<void(Fields&)>& read) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_array() || value->size() > max_count) {
    Wrong(name, "not a list of at most " + std::to_string(max_count));
    return;
  }
  std::size_t index = 0;
  for (const nlohmann::json& item : *value) {
    Fields fields(item,
                  (path_.empty() ? "" : path_ + ".") + name + "[" + std::to_string(index++) + "]");
    if (item.is_object()) read(fields);
    if (!error_) error_ = fields.error_;
  }
}

std::string Fields::Raw(const char* name, std::size_t max_length) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return "";
  if (IsDeeperThan(*value, kMaxJsonLevels)) {
    Wrong(name, "nested more than " + std::to_string(kMaxJsonLevels) + " levels deep");
    return "";
  }
  std::string text = value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() <= max_length) return text;
  Wrong(name, "larger than " + std::to_string(max_length) + " bytes");
  return "";
}

}  // namespace pliant::api
