#include "base/log.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = spdlog::stderr_logger_mt("pliant");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %-7l %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

// Bytes from outside may be no UTF-8: they must not stop a log line.
std::string Json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Value::Value(double value) : text_(nlohmann::json(value).dump()) {}

void Configure(Format format, Level least) {
  g_format = format;
  Logger().set_level(ToSpdlog(least));
  // In JSON the message of this file holds the whole object but its head, which spdlog's pattern
  // writes.
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
  Logger().log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace pliant::log
