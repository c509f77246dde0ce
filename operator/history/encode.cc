#include "operator/history/encode.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <variant>

namespace pliant::history {
namespace {

// Nothing to escape: most names and sentences.
bool IsPlain(std::string_view text) {
  for (const char c : text)
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') return false;
  return true;
}

void PutText(std::string_view text, std::string& out) {
  if (!IsPlain(text)) {
    out += nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true,
                                     nlohmann::json::error_handler_t::replace);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

template <typename Number>
void PutNumber(Number number, std::string& out) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end);
}

void PutValue(const Value& value, std::string& out) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    PutText(*text, out);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    PutNumber(*integer, out);
  } else if (const double real = std::get<double>(value); std::isfinite(real)) {
    PutNumber(real, out);
  } else {
    out += "null";
  }
}

// Puts what separates the items of a list or an object.
class Separator {
 public:
  void Put(std::string& out) {
    if (!first_) out += ',';
    first_ = false;
  }

 private:
  bool first_ = true;
};

template <typename Map, typename Put>
void PutObject(const Map& values, const Put& put, std::string& out) {
  Separator separator;
  out += '{';
  for (const auto& [field, value] : values) {
    separator.Put(out);
    PutText(ToString(field), out);
    out += ':';
    put(value);
  }
  out += '}';
}

void PutFrame(const Frame& frame, std::string& out) {
  Separator kinds;
  out += '{';
  for (auto each = frame.begin(); each != frame.end();) {
    const Kind kind = each->first.kind;
    kinds.Put(out);
    PutText(ToString(kind), out);
    out += ":{";
    Separator names;
    while (each != frame.end() && each->first.kind == kind) {
      const std::string& name = each->first.name;
      const auto put = [&out](const Value& value) { PutValue(value, out); };
      names.Put(out);
      PutText(name, out);
      out += ':';
      if (kind != Kind::kHeld) {
        PutObject(each->second, put, out);
        ++each;
        continue;
      }
      out += '{';
      Separator nodes;
      for (; each != frame.end() && each->first.kind == kind && each->first.name == name; ++each) {
        nodes.Put(out);
        PutText(each->first.node, out);
        out += ':';
        PutObject(each->second, put, out);
      }
      out += '}';
    }
    out += '}';
  }
  out += '}';
}

void PutChange(const Change& change, std::string& out) {
  out += "{\"at\":";
  PutNumber(change.at.time_since_epoch().count(), out);
  out += ',';
  PutText(ToString(change.subject.kind), out);
  out += ':';
  PutText(change.subject.name, out);
  if (change.subject.kind == Kind::kHeld) {
    out += ",\"node\":";
    PutText(change.subject.node, out);
  }
  out += ",\"set\":";
  if (change.gone) {
    out += "null";
  } else {
    PutObject(
        change.values,
        [&out](const std::optional<Value>& value) {
          value ? PutValue(*value, out) : static_cast<void>(out += "null");
        },
        out);
  }
  out += '}';
}

}  // namespace

std::string EncodeMoment(const Moment& moment, bool open) {
  std::string out = "{\"replica\":";
  PutText(moment.cursor.replica, out);
  out += ",\"sequence\":";
  PutNumber(moment.cursor.sequence, out);
  out += ",\"from\":";
  PutNumber(moment.at.time_since_epoch().count(), out);
  out += ",\"frame\":";
  PutFrame(moment.frame, out);
  if (!open) out += '}';
  return out;
}

std::string EncodeChanges(const std::vector<Change>& changes) {
  std::string out = "[";
  Separator separator;
  for (const Change& change : changes) {
    separator.Put(out);
    PutChange(change, out);
  }
  out += ']';
  return out;
}

}  // namespace pliant::history
