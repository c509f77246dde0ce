#include <chrono>
#include <concepts>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/json.h"
#include "operator/api/enum_field.h"
#include "operator/api/fields.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/describe.h"
#include "operator/replay/enumerators.h"

namespace pliant::replay {
namespace {

// A field that is absent keeps the value of a new struct.
class Reader {
 public:
  explicit Reader(api::Fields& from) : from_(from) {}

  void Text(const char* name, std::string& value) {
    value = from_.String(name, std::move(value), kMaxTextBytes);
  }
  void Flag(const char* name, bool& value) { value = from_.Bool(name, value); }
  template <std::integral T>
  void Number(const char* name, T& value, Bounds bounds) {
    if (!from_.Has(name) && !IsWithin(value, bounds)) return from_.Wrong(name, "missing");
    value = static_cast<T>(from_.Long(name, value, bounds.min, bounds.max));
  }
  template <std::integral T>
  void Number(const char* name, std::optional<T>& value, Bounds bounds) {
    if (const auto number = from_.OptionalInt(name, bounds.min, bounds.max)) {
      value = static_cast<T>(*number);
    }
  }
  void Time(const char* name, planner::WallTime& time) {
    std::int64_t millis = time.time_since_epoch().count();
    Number(name, millis, kTimes);
    time = planner::WallTime(std::chrono::milliseconds(millis));
  }
  void Time(const char* name, std::optional<planner::WallTime>& time) {
    if (from_.Has(name)) Time(name, time.emplace());
  }
  void Duration(const char* name, planner::Seconds& value, Bounds bounds) {
    std::int64_t seconds = value.count();
    Number(name, seconds, bounds);
    value = planner::Seconds(seconds);
  }
  template <typename Enumeration>
  void Enum(const char* name, Enumeration& value) {
    const auto all = std::views::iota(0, static_cast<int>(kLast<Enumeration>) + 1) |
                     std::views::transform([](int each) { return static_cast<Enumeration>(each); });
    value = api::ReadEnum(from_, name, value, all);
  }
  void Numbers(const char* name, std::vector<int>& numbers, Bounds bounds) {
    if (!from_.Has(name)) return;
    numbers = from_.Ints(name, static_cast<int>(bounds.min), static_cast<int>(bounds.max),
                         kMaxLearnersOfJob);
  }
  void Texts(const char* name, std::vector<std::string>& texts) {
    if (from_.Has(name)) texts = from_.StringList(name, kMaxItems);
  }
  void Texts(const char* name, std::map<std::string, std::string>& texts) {
    texts = from_.Strings(name, kMaxItems);
  }
  void Job(planner::JobKey& key) {
    Text("namespace", key.name_space);
    Text("name", key.name);
    for (const auto& [name, text] : {std::pair("namespace", key.name_space), {"name", key.name}}) {
      if (text.empty()) from_.Wrong(name, "missing");
      // Else two jobs could have one stand-in for a uid.
      if (text.contains('/')) from_.Wrong(name, "contains a slash");
    }
    key.uid = StandInUid(key);
  }
  template <typename T, std::same_as<Bounds>... Extra>
  void Object(const char* name, T& value, Extra... extra) {
    from_.Object(name, [&](api::Fields& fields) {
      Reader inner(fields);
      Describe(inner, value, extra...);
    });
  }
  template <typename T>
  void Object(const char* name, std::optional<T>& value) {
    if (from_.Has(name)) Object(name, value.emplace());
  }
  void Needs(const char* name, planner::SharedNeeds& shared) {
    planner::PodNeeds needs;
    Object(name, needs, Bounds{});
    shared.needs = std::make_shared<const planner::PodNeeds>(std::move(needs));
  }
  template <typename T>
  void List(const char* name, std::vector<T>& items, std::size_t max_count) {
    from_.Objects(name, max_count, [&](api::Fields& fields) {
      Reader inner(fields);
      Describe(inner, items.emplace_back());
    });
  }

 private:
  static bool IsWithin(std::int64_t value, Bounds bounds) {
    return value >= bounds.min && value <= bounds.max;
  }

  api::Fields& from_;
};

template <typename T, typename KeyOf>
Status CheckUnique(const char* list, const std::vector<T>& items, const KeyOf& key_of) {
  std::set<std::invoke_result_t<KeyOf, const T&>> seen;
  for (std::size_t index = 0; index < items.size(); ++index) {
    if (seen.insert(key_of(items[index])).second) continue;
    return Invalid(Format("snapshot.{}[{}]: is in the list twice", list, index));
  }
  return {};
}

// The rules between fields that the planner relies on.
Status Check(const planner::ClusterSnapshot& snapshot) {
  RETURN_IF_ERROR(CheckUnique("nodes", snapshot.nodes, [](const planner::NodeView& node) {
    return std::pair(std::string_view(node.name), std::string_view(node.pool));
  }));
  RETURN_IF_ERROR(CheckUnique("jobs", snapshot.jobs, [](const planner::JobView& job) {
    return std::string_view(job.key.uid);
  }));
  RETURN_IF_ERROR(CheckUnique("budgets", snapshot.budgets, [](const planner::GpuBudget& budget) {
    return std::string_view(budget.name_space);
  }));
  const auto name = [](const auto& item) { return std::string_view(item.name); };
  RETURN_IF_ERROR(CheckUnique("queues", snapshot.queues, name));
  RETURN_IF_ERROR(CheckUnique("pools", snapshot.pools, name));
  for (std::size_t index = 0; index < snapshot.jobs.size(); ++index) {
    const planner::JobView& job = snapshot.jobs[index];
    if (job.min_learners <= job.max_learners) continue;
    return Invalid(Format("snapshot.jobs[{}].minLearners: {} is more than maxLearners, which is {}",
                          index, job.min_learners, job.max_learners));
  }
  return {};
}

// Jobs without `needs` have no GPUs, which no planner could place.
Status CheckNeeds(const planner::ClusterSnapshot& snapshot) {
  for (std::size_t index = 0; index < snapshot.jobs.size(); ++index) {
    if (snapshot.jobs[index].needs.resources.gpus >= kGpusPerLearner.min) continue;
    return Invalid(Format("snapshot.jobs[{}].needs.resources.gpus: missing", index));
  }
  return {};
}

}  // namespace

std::string StandInUid(const planner::JobKey& job) { return ToString(job); }

Result<DebugSnapshot> ReadSnapshot(std::string_view text) {
  if (text.size() > kMaxSnapshotBytes) {
    return Invalid(Format("larger than {} MiB", kMaxSnapshotBytes >> 20));
  }
  const nlohmann::json value = ParseJson(text);
  if (value.is_discarded()) {
    return Invalid(Format("not JSON, or nested more than {} levels deep", kMaxJsonLevels));
  }
  api::Fields root(value);
  if (root.error()) return std::unexpected(*root.error());
  const std::int64_t version = root.Long("version", 0, 1, INT64_MAX);
  if (!root.error() && version != kFormatVersion) {
    root.Wrong("version",
               Format("{}; this operator reads only {}: use the operator that wrote it",
                      version == 0 ? "missing" : std::to_string(version), kFormatVersion));
  }
  if (!root.Has("snapshot")) root.Wrong("snapshot", "missing");
  DebugSnapshot debug;
  if (!root.error()) {
    Reader reader(root);
    Describe(reader, debug);
  }
  if (root.error()) return std::unexpected(*root.error());
  RETURN_IF_ERROR(CheckNeeds(debug.snapshot));
  RETURN_IF_ERROR(Check(debug.snapshot));
  return debug;
}

}  // namespace pliant::replay
