#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

// Structured logs for the person on call: a constant message, facts as pairs, once per change.
//   log::Info("job resized", {{"job", key}, {"from", 4}, {"to", 2}});
namespace pliant::log {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format {
  kText,
  kJson
};  // kText for terminals, kJson (one object a line) for log collectors

class Value {
 public:
  Value(std::string_view text) : text_(text), quoted_(true) {}  // NOLINT: implicit, for the pairs
  Value(const std::string& text) : Value(std::string_view(text)) {}  // NOLINT
  Value(const char* text) : Value(std::string_view(text)) {}         // NOLINT
  Value(bool value) : text_(value ? "true" : "false") {}             // NOLINT
  Value(std::integral auto value) : text_(std::to_string(value)) {}  // NOLINT
  Value(double value);                                               // NOLINT

  const std::string& text() const { return text_; }
  bool quoted() const { return quoted_; }  // whether JSON shows it as a string

 private:
  std::string text_;
  bool quoted_ = false;
};

struct Pair {
  std::string_view name;
  Value value;
};

// Called once, before other threads log. Lines go to standard error.
void Configure(Format format, Level least);
// "debug", "info", "warning" or "error"; kInfo for anything else.
Level ParseLevel(std::string_view name);

// Each line, as it is written, also goes to `copy`, on the thread that logs; an empty function ends
// that. Not to be called from within `copy`.
void CopyLinesTo(std::function<void(std::string_view line)> copy);

// Shows a line below the log for a person at a terminal. It replaces the previous one and stays
// below new log lines. Empty: removes it.
void ShowStatus(std::string_view line);

void Write(Level level, std::string_view message, std::initializer_list<Pair> facts);
inline void Debug(std::string_view message, std::initializer_list<Pair> facts = {}) {
  Write(Level::kDebug, message, facts);
}
inline void Info(std::string_view message, std::initializer_list<Pair> facts = {}) {
  Write(Level::kInfo, message, facts);
}
inline void Warning(std::string_view message, std::initializer_list<Pair> facts = {}) {
  Write(Level::kWarning, message, facts);
}
inline void Error(std::string_view message, std::initializer_list<Pair> facts = {}) {
  Write(Level::kError, message, facts);
}

}  // namespace pliant::log
