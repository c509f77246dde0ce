#include "trainer/membership/json_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/json.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

const Json kNothing = Json::object();

}  // namespace

JsonFields::JsonFields(const Json& object, std::string path, std::optional<Error>& fault)
    : object_(object.is_object() ? object : kNothing), path_(std::move(path)), fault_(fault) {
  if (!object.is_object()) Wrong("", "must be an object");
}

std::string JsonFields::PathOf(std::string_view name) const {
  if (path_.empty()) return std::string(name);
  return name.empty() ? path_ : Format("{}.{}", path_, name);
}

void JsonFields::Wrong(std::string_view name, std::string_view what) {
  if (fault_) return;
  const std::string path = PathOf(name);
  fault_ = Error{ErrorCode::kInvalid, Format("{} {}", path.empty() ? "it" : path, what)};
}

bool JsonFields::Has(std::string_view name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

const Json* JsonFields::Find(std::string_view name) {
  const auto found = object_.find(name);
  if (found != object_.end() && !found->is_null()) return &*found;
  Wrong(name, "is missing");
  return nullptr;
}

std::string JsonFields::String(std::string_view name, std::size_t max_bytes) {
  const Json* value = Find(name);
  if (value == nullptr) return {};
  const auto* text = value->get_ptr<const std::string*>();
  if (text == nullptr) {
    Wrong(name, "must be a string");
    return {};
  }
  if (text->size() > max_bytes) {
    Wrong(name, Format("is longer than {} bytes", max_bytes));
    return {};
  }
  return *text;
}

std::uint64_t JsonFields::Unsigned(std::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return 0;
  if (const auto* number = value->get_ptr<const Json::number_unsigned_t*>()) return *number;
  Wrong(name, "must be a whole number, not negative");
  return 0;
}

double JsonFields::Number(std::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return 0;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (std::isfinite(number)) return number;
  Wrong(name, "must be a number");
  return 0;
}

bool JsonFields::Bool(std::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return false;
  if (const auto* flag = value->get_ptr<const bool*>()) return *flag;
  Wrong(name, "must be true or false");
  return false;
}

void JsonFields::Object(std::string_view name, const std::function<void(JsonFields&)>& read) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  JsonFields fields(*value, PathOf(name), fault_);
  read(fields);
}

void JsonFields::Objects(std::string_view name, std::size_t max_items,
                         const std::function<void(JsonFields&)>& read) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return Wrong(name, "must be an array");
  if (value->size() > max_items) {
    return Wrong(name, Format("has more than {} items", max_items));
  }
  std::size_t index = 0;
  for (const Json& item : *value) {
    JsonFields fields(item, Format("{}[{}]", PathOf(name), index++), fault_);
    read(fields);
  }
}

void JsonFields::Strings(std::string_view name, std::size_t max_items,
                         const std::function<void(std::string, std::string)>& read) {
  const Json* value = FindObject(name, max_items);
  if (value == nullptr) return;
  JsonFields fields(*value, PathOf(name), fault_);
  for (const auto& [key, item] : value->items()) read(key, fields.String(key));
}

std::optional<double> JsonFields::OptionalNumber(std::string_view name) {
  if (!Has(name)) return std::nullopt;
  return Number(name);
}

void JsonFields::Numbers(std::string_view name, std::size_t max_items,
                         const std::function<void(const std::string&, double)>& read) {
  const Json* value = FindObject(name, max_items);
  if (value == nullptr) return;
  JsonFields fields(*value, PathOf(name), fault_);
  for (const auto& [key, item] : value->items()) read(key, fields.Number(key));
}

const Json* JsonFields::FindObject(std::string_view name, std::size_t max_items) {
  const Json* value = Find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) {
    Wrong(name, "must be an object");
    return nullptr;
  }
  if (value->size() > max_items) {
    Wrong(name, Format("has more than {} fields", max_items));
    return nullptr;
  }
  return value;
}

void PutNumber(Json& object, const std::string& name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[name] = *value;
}

Status ReadJsonObject(std::string_view text, std::size_t max_bytes,
                      const std::function<void(JsonFields&)>& read) {
  if (text.size() > max_bytes) return Invalid(Format("it is longer than {} bytes", max_bytes));
  if (IsNestedTooDeep(text)) {
    return Invalid(Format("it is nested more than {} levels deep", kMaxJsonLevels));
  }
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return Invalid("it is not JSON");
  std::optional<Error> fault;
  JsonFields fields(object, "", fault);
  if (!fault) read(fields);
  if (fault) return std::unexpected(*std::move(fault));
  return {};
}

std::string WriteJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pliant
