#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/api/time.h"

namespace pliant::api {

// Bound of the counters in a status: counting continues from them and must not overflow.
inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;
// Bound of the sentence `reason` in a status, as in the CRDs.
inline constexpr std::size_t kMaxReasonBytes = 1024;

// Reads the fields of a JSON object. A field that is absent or null gets its default. So does one
// of the wrong type or size; the first such field becomes the error, which names its path.
class Fields {
 public:
  // `object` outlives the reader; anything but an object reads as an empty one, with an error.
  explicit Fields(const nlohmann::json& object, std::string path = "");

  // The field as it is; null if it is absent or null.
  const nlohmann::json* Find(const char* name) const;
  bool Has(const char* name) const { return Find(name) != nullptr; }
  // The names of all fields.
  std::vector<std::string> Names() const;
  std::string String(const char* name, std::string fallback = "", std::size_t max_length = 65536);
  // A sentence for people, truncated: a long text must not make the object unreadable.
  std::string Sentence(const char* name, std::size_t max_bytes);
  // A string, or a number as it is written: a quantity may be either.
  std::string StringOrNumber(const char* name, std::string fallback = "");
  bool Bool(const char* name, bool fallback = false);
  std::int64_t Long(const char* name, std::int64_t fallback, std::int64_t least, std::int64_t most);
  int Int(const char* name, int fallback, int least, int most);
  std::optional<std::int64_t> OptionalInt(const char* name, std::int64_t least, std::int64_t most);
  std::optional<double> OptionalNumber(const char* name);
  std::optional<WallTime> OptionalTime(const char* name);
  std::vector<int> Ints(const char* name, int least, int most, std::size_t max_count);

  // A list of strings, and an object whose values are strings. `max_length` bounds each string, and
  // each name in the object.
  std::vector<std::string> StringList(const char* name, std::size_t max_count,
                                      std::size_t max_length = 65536);
  std::map<std::string, std::string> Strings(const char* name, std::size_t max_count,
                                             std::size_t max_length = 65536);

  // Calls `read` if the field is there; errors within it are errors of this reader.
  void Object(const char* name, const std::function<void(Fields&)>& read);
  void Objects(const char* name, std::size_t max_count, const std::function<void(Fields&)>& read);
  // The field as JSON text; "" if it is absent. It may be nested up to 100 levels deep, so that
  // recursive functions are safe on it.
  std::string Raw(const char* name, std::size_t max_length);

  // Sets the error for a rule that type and range alone do not cover.
  void Wrong(const char* name, std::string_view why);
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string BoundedText(const char* name, const nlohmann::json& text, std::size_t max_length);

  const nlohmann::json& object_;
  const std::string path_;
  std::optional<Error> error_;
};

}  // namespace pliant::api
