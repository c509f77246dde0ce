#include <chrono>
#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "operator/replay/debug_snapshot.h"
#include "operator/replay/describe.h"
#include "operator/replay/enumerators.h"

namespace pliant::replay {
namespace {

using nlohmann::json;

class Writer {
 public:
  void Text(const char* name, const std::string& value) { out_[name] = value; }
  void Flag(const char* name, bool value) { out_[name] = value; }
  void Number(const char* name, std::integral auto value, Bounds) { out_[name] = value; }
  template <std::integral T>
  void Number(const char* name, const std::optional<T>& value, Bounds) {
    out_[name] = value ? json(*value) : json();
  }
  // Milliseconds since 1970: exact, unlike a text of whole seconds.
  void Time(const char* name, planner::WallTime time) {
    out_[name] = time.time_since_epoch().count();
  }
  void Time(const char* name, const std::optional<planner::WallTime>& time) {
    out_[name] = time ? json(time->time_since_epoch().count()) : json();
  }
  void Duration(const char* name, planner::Seconds value, Bounds) { out_[name] = value.count(); }
  template <typename Enumeration>
  void Enum(const char* name, Enumeration value) {
    out_[name] = ToString(value);
  }
  void Numbers(const char* name, const std::vector<int>& numbers, Bounds) { out_[name] = numbers; }
  void Texts(const char* name, const std::vector<std::string>& texts) { out_[name] = texts; }
  void Texts(const char* name, const std::map<std::string, std::string>& texts) {
    out_[name] = texts;
  }
  void Job(const planner::JobKey& key) {
    Text("namespace", key.name_space);
    Text("name", key.name);
  }
  template <typename T, std::same_as<Bounds>... Extra>
  void Object(const char* name, const T& value, Extra... extra) {
    Writer inner;
    Describe(inner, value, extra...);
    out_[name] = inner.Take();
  }
  template <typename T>
  void Object(const char* name, const std::optional<T>& value) {
    if (!value) {
      out_[name] = nullptr;
    } else {
      Object(name, *value);
    }
  }
  void Needs(const char* name, const planner::SharedNeeds& shared) {
    Object(name, shared.OrNone(), Bounds{});
  }
  template <typename T>
  void List(const char* name, const std::vector<T>& items, std::size_t) {
    json list = json::array();
    for (const T& item : items) {
      Writer inner;
      Describe(inner, item);
      list.push_back(inner.Take());
    }
    out_[name] = std::move(list);
  }
  json Take() { return std::move(out_); }

 private:
  json out_ = json::object();
};

std::string Print(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string WriteSnapshot(const DebugSnapshot& snapshot) {
  Writer writer;
  writer.Number("version", kFormatVersion, {});
  Describe(writer, snapshot);
  return Print(writer.Take());
}

std::string WritePlan(const planner::Plan& plan) {
  Writer writer;
  Describe(writer, plan);
  return Print(writer.Take());
}

}  // namespace pliant::replay
