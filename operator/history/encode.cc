#include "operator/history/encode.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/format.h"

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

void PutCells(const Cells& cells, const Texts& texts, std::string& out) {
  Separator separator;
  out += '{';
  for (const Cell& cell : cells) {
    separator.Put(out);
    PutText(ToString(cell.field), out);
    out += ':';
    if (cell.type == Cell::Type::kText) {
      PutText(texts.Of(static_cast<TextId>(cell.bits)), out);
    } else {
      PutValue(ToValue(cell, texts), out);
    }
  }
  out += '}';
}

// Puts the subjects, which come in order, into an object for each kind, and those of kHeld into one
// more for each job.
class FrameWriter {
 public:
  FrameWriter(const Texts& texts, std::string& out) : texts_(texts), out_(out) { out_ += '{'; }

  void Put(const Sight& sight) {
    const bool same_kind = kind_ == sight.kind;
    const bool same_job = same_kind && sight.kind == Kind::kHeld && name_ == sight.name;
    if (same_job) {
      out_ += ',';
    } else {
      CloseJob();
      if (!same_kind) {
        CloseKind();
        kinds_.Put(out_);
        PutText(ToString(sight.kind), out_);
        out_ += ":{";
        kind_ = sight.kind;
      } else {
        out_ += ',';
      }
      name_ = sight.name;
      PutText(name_, out_);
      out_ += ':';
      if (sight.kind == Kind::kHeld) {
        out_ += '{';
        in_job_ = true;
      }
    }
    if (sight.kind == Kind::kHeld) {
      PutText(sight.node, out_);
      out_ += ':';
    }
    PutCells(sight.cells, texts_, out_);
  }

  void End() {
    CloseJob();
    CloseKind();
    out_ += '}';
  }

 private:
  void CloseJob() {
    if (std::exchange(in_job_, false)) out_ += '}';
  }
  void CloseKind() {
    if (kind_) out_ += '}';
  }

  const Texts& texts_;
  std::string& out_;
  Separator kinds_;
  std::optional<Kind> kind_;
  std::string_view name_;  // of the timeline, so it stays
  bool in_job_ = false;
};

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

std::string EncodeTimeline(const Timeline& timeline, WallTime from, WallTime now,
                           std::optional<WallTime> origin) {
  std::string frame;
  FrameWriter writer(timeline.texts(), frame);
  const auto [at, cursor] =
      timeline.Visit(from, [&writer](const Sight& sight) { writer.Put(sight); });
  writer.End();
  std::string out = "{\"replica\":";
  PutText(cursor.replica, out);
  out += Format(",\"sequence\":{},\"from\":{},\"begin\":{},\"now\":{},", cursor.sequence,
                at.time_since_epoch().count(),
                timeline.begin().value_or(at).time_since_epoch().count(),
                now.time_since_epoch().count());
  if (origin) out += Format("\"origin\":{},", origin->time_since_epoch().count());
  out += "\"frame\":" + frame;
  out += ",\"changes\":";
  out += EncodeChanges(*timeline.Since(cursor));
  out += '}';
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
