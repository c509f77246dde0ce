#include "operator/replay/differences.h"

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "operator/replay/debug_snapshot.h"

namespace pliant::replay {
namespace {

using nlohmann::json;

struct Key {
  const char* list;
  std::initializer_list<const char*> fields;  // they name an item
};

// Lists of the plan whose items have names.
const Key kKeys[] = {{"decisions", {"namespace", "name"}},
                     {"queues", {"queue"}},
                     {"pools", {"pool"}},
                     {"gatesOpen", {"namespace", "name", "learner"}}};

// The list as an object, by the names of its items.
json ByName(const json& list, const Key& key) {
  json named = json::object();
  for (const json& item : list) {
    std::string name;
    for (const char* field : key.fields) {
      name += (name.empty() ? "" : "/") + item.at(field).get<std::string>();
    }
    named["[" + name + "]"] = item;
  }
  return named;
}

json NamedItemsOf(json plan) {
  for (const Key& key : kKeys) plan[key.list] = ByName(plan[key.list], key);
  return plan;
}

std::string Value(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void Compare(const std::string& path, const json& in_file, const json& now,
             std::vector<std::string>& lines) {
  if (in_file == now) return;
  if (!in_file.is_object() || !now.is_object()) {
    lines.push_back(Format("{}: {} in the file, {} now", path, Value(in_file), Value(now)));
    return;
  }
  const auto inner = [&](const std::string& name) {
    return path.empty() || name.starts_with('[') ? path + name : path + "." + name;
  };
  for (const auto& [name, value] : in_file.items()) {
    if (now.contains(name)) {
      Compare(inner(name), value, now[name], lines);
    } else {
      lines.push_back(inner(name) + ": only in the file");
    }
  }
  for (const auto& [name, value] : now.items()) {
    if (!in_file.contains(name)) lines.push_back(inner(name) + ": only now");
  }
}

}  // namespace

std::vector<std::string> Differences(const planner::Plan& in_file, const planner::Plan& now) {
  const std::string text_in_file = WritePlan(in_file);
  const std::string text_now = WritePlan(now);
  if (text_in_file == text_now) return {};
  std::vector<std::string> lines;
  Compare("", NamedItemsOf(json::parse(text_in_file)), NamedItemsOf(json::parse(text_now)), lines);
  if (lines.empty()) lines.emplace_back("the same items in another order");
  return lines;
}

}  // namespace pliant::replay
