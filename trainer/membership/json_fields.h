#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

inline constexpr std::size_t kMaxTextBytes = 4096;  // default for one field

// Reads the fields of one JSON object from a peer that may be faulty. The first error is kept, with
// the path of its field, and a faulty field reads as empty: a decoder reads all its fields and
// checks once. For .cc files of this folder.
class JsonFields {
 public:
  // `object` and `fault` outlive it. If `object` is not an object, that is the first error.
  JsonFields(const nlohmann::json& object, std::string path, std::optional<Error>& fault);

  // These fields must be present.
  std::string String(std::string_view name, std::size_t max_bytes = kMaxTextBytes);
  std::uint64_t Unsigned(std::string_view name);
  double Number(std::string_view name);                         // finite
  std::optional<double> OptionalNumber(std::string_view name);  // absent: there is no such field
  bool Bool(std::string_view name);
  // Calls `read` with the fields of the object `name`.
  void Object(std::string_view name, const std::function<void(JsonFields&)>& read);
  // Calls `read` for every item of the array `name`, each of which must be an object.
  void Objects(std::string_view name, std::size_t max_items,
               const std::function<void(JsonFields&)>& read);
  // Calls `read` with every name and value of the object `name`, whose values must be strings.
  void Strings(std::string_view name, std::size_t max_items,
               const std::function<void(std::string, std::string)>& read);
  // The same of an object whose values must be finite numbers.
  void Numbers(std::string_view name, std::size_t max_items,
               const std::function<void(const std::string&, double)>& read);

  // Whether a field is present. Null counts as absent.
  bool Has(std::string_view name) const;

  // Records an error of field `name`. The message is its path and `what`: "must be ...".
  void Wrong(std::string_view name, std::string_view what);
  bool ok() const { return !fault_.has_value(); }

 private:
  // Null if the field is absent, which is recorded as an error.
  const nlohmann::json* Find(std::string_view name);
  // The same if it is not an object with at most `max_items` fields.
  const nlohmann::json* FindObject(std::string_view name, std::size_t max_items);
  std::string PathOf(std::string_view name) const;

  const nlohmann::json& object_;
  std::string path_;
  std::optional<Error>& fault_;
};

// Parses `text` and reads the object in it. kInvalid, with the field named.
template <typename T>
Result<T> ReadJson(std::string_view text, std::size_t max_bytes,
                   const std::function<T(JsonFields&)>& read);

// The untyped part of ReadJson.
Status ReadJsonObject(std::string_view text, std::size_t max_bytes,
                      const std::function<void(JsonFields&)>& read);

template <typename T>
Result<T> ReadJson(std::string_view text, std::size_t max_bytes,
                   const std::function<T(JsonFields&)>& read) {
  std::optional<T> value;
  RETURN_IF_ERROR(
      ReadJsonObject(text, max_bytes, [&](JsonFields& fields) { value.emplace(read(fields)); }));
  return *std::move(value);
}

// A number that is unknown, or not finite (a loss that overflowed), is omitted.
void PutNumber(nlohmann::json& object, const std::string& name, const std::optional<double>& value);

// Writes one line. Never throws: bytes that are not UTF-8 are replaced.
std::string WriteJson(const nlohmann::json& value);

}  // namespace pliant
