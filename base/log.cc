#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pliant::log {
namespace {

std::atomic<Format> g_format{Format::kText};

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Passes a copy of each line to a function.
class CopySink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void Set(std::function<void(std::string_view)> copy) {
    const std::lock_guard lock(mutex_);
    copy_ = std::move(copy);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!copy_) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    copy_({line.data(), line.size()});
  }
  void flush_() override {}

  std::function<void(std::string_view)> copy_;
};

const std::shared_ptr<CopySink>& TheCopy() {
  static const auto sink = std::make_shared<CopySink>();
  return sink;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = spdlog::stderr_logger_mt("pliant");
    made->sinks().push_back(TheCopy());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %-7l %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

// The line below the log. It is erased before a log line is written, and drawn again below it.
class StatusBelow {
 public:
  void Set(std::string_view line) {
    const std::lock_guard lock(mutex_);
    Erase();
    line_ = line;
    Draw();
  }
  void LogAbove(const std::function<void()>& log) {
    const std::lock_guard lock(mutex_);
    Erase();
    log();
    Draw();
  }

 private:
  void Erase() const {
    if (!line_.empty()) std::fputs("\r\x1b[K", stderr);
  }
  // Cuts the line at the width of the terminal: a line that wraps could not be erased.
  void Draw() const {
    if (line_.empty()) return;
    winsize size{};
    std::size_t most = line_.size();
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) most = size.ws_col - 1;
    std::fputs(line_.substr(0, most).c_str(), stderr);
  }

  std::mutex mutex_;
  std::string line_;
};

StatusBelow& TheStatus() {
  static StatusBelow status;
  return status;
}

// Bytes from outside may not be UTF-8: they must not prevent a log line.
std::string Json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Value::Value(double value) : text_(nlohmann::json(value).dump()) {}

void Configure(Format format, Level least) {
  g_format = format;
  Logger().set_level(ToSpdlog(least));
  // In JSON the text of Write holds the whole object except its beginning, which comes from
  // spdlog's pattern.
  Logger().set_pattern(format == Format::kJson
                           ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                           : "%Y-%m-%dT%H:%M:%S.%e%z %-7l %v");
}

Level ParseLevel(std::string_view name) {
  if (name == "debug") return Level::kDebug;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  return Level::kInfo;
}

void CopyLinesTo(std::function<void(std::string_view line)> copy) {
  Logger();
  TheCopy()->Set(std::move(copy));
}

void ShowStatus(std::string_view line) { TheStatus().Set(line); }

void Write(Level level, std::string_view message, std::initializer_list<Pair> facts) {
  if (!Logger().should_log(ToSpdlog(level))) return;
  const bool json = g_format == Format::kJson;
  std::string line = json ? "\"message\":" + Json(message) : std::string(message);
  for (const Pair& fact : facts) {
    const std::string& text = fact.value.text();
    if (json) {
      line += "," + Json(fact.name) + ":" + (fact.value.quoted() ? Json(text) : text);
    } else {
      const bool plain = !text.empty() && text.find_first_of(" \"\n\t=") == std::string::npos;
      line += " " + std::string(fact.name) + "=" + (plain ? text : Json(text));
    }
  }
  TheStatus().LogAbove(
      [&] { Logger().log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size())); });
}

}  // namespace pliant::log
