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

inline constexpr std::size_t kMaxTextBytes = 4096;  // of a field that says no other

// Reads the fields of one JSON object from a peer that may be wrong. The first fault is kept, with
// the path of its field, and everything read after it is empty: a decoder reads all its fields and
// asks once. For .cc files of this folder.
class JsonFields {
 public:
  // `object` and `fault` outlive it. Whether `object` is one is checked here.
  JsonFields(const nlohmann::json& object, std::string path, std::optional<Error>& fault);

  // These must be there.
  std::string String(std::string_view name, std::size_t max_bytes = kMaxTextBytes);
  std::uint64_t Unsigned(std::string_view name);
  double Number(std::string_view name);  // finite
  bool Bool(std::string_view name);
  // Calls `read` with the fields of the object `name`.
  void Object(std::string_view name, const std::function<void(JsonFields&)>& read);
  // Calls `read` for every item of the array `name`, each of which must be an object.
  void Objects(std::string_view name, std::size_t max_items,
               const std::function<void(JsonFields&)>& read);
  // Calls `read` with every name and value of the object `name`, whose values must be strings.
  void Strings(std::string_view name, std::size_t max_items,
               const std::function<void(std::string, std::string)>& read);

  // Absent and null are the same.
  bool Has(std::string_view name) const;

  // Notes a fault of field `name`, in words that go on from its path: "must be ...".
  void Wrong(std::string_view name, std::string_view what);
  bool ok() const { return !fault_.has_value(); }

 private:
  // Nothing, with a fault noted, when it is absent.
  const nlohmann::json* Find(std::string_view name);
  std::string PathOf(std::string_view name) const;

  const nlohmann::json& object_;
  std::string path_;
  std::optional<Error>& fault_;
};

// Parses `text` and reads the object in it. kInvalid, with the field named.
template <typename T>
Result<T> ReadJson(std::string_view text, std::size_t max_bytes,
                   const std::function<T(JsonFields&)>& read);

// As ReadJson, for the untyped part of it.
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

// One line, without exceptions: what is not UTF-8 is replaced.
std::string WriteJson(const nlohmann::json& value);

}  // namespace pliant
