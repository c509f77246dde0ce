#include "operator/api/resources.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/bounded.h"
#include "operator/api/quantity.h"

namespace pliant::api {
namespace {

// More than an object of the API server can hold.
constexpr std::size_t kMaxContainers = 65536;
// More than a node has device plugins. A pod that names more, so that some are not seen, gains
// nothing: the scheduler counts them, and learners do not start where they are used.
constexpr std::size_t kMaxOtherResources = 32;

template <typename Combine>
Resources Combined(const Resources& a, const Resources& b, const Combine& combine) {
  Resources both{.gpus = combine(a.gpus, b.gpus),
                 .cpu_millis = combine(a.cpu_millis, b.cpu_millis),
                 .memory_bytes = combine(a.memory_bytes, b.memory_bytes),
                 .others = a.others};
  for (const auto& [name, amount] : b.others) {
    if (both.others.size() >= kMaxOtherResources && !both.others.contains(name)) continue;
    std::int64_t& of_both = both.others[name];
    of_both = combine(of_both, amount);
  }
  return both;
}

Resources Sum(const Resources& a, const Resources& b) { return Combined(a, b, BoundedSum); }

Resources Larger(const Resources& a, const Resources& b) {
  return Combined(a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}

std::int64_t ReadQuantity(Fields& list, const char* name,
                          Result<std::int64_t> (*parse)(std::string_view)) {
  const std::string text = list.StringOrNumber(name, "0");
  const Result<std::int64_t> number = parse(text);
  if (number) return *number;
  list.Wrong(name, number.error().message);
  return 0;
}

// Only names of extended resources have a domain. An amount that is not understood is the largest.
std::map<std::string, std::int64_t> ReadOthers(Fields& list, const std::string& gpu_resource) {
  std::map<std::string, std::int64_t> others;
  for (const std::string& name : list.Names()) {
    if (name == gpu_resource || !name.contains('/')) continue;
    const auto amount = ParseQuantity(list.StringOrNumber(name.c_str(), "0"));
    if (amount != 0) others[name] = amount.value_or(INT64_MAX);
    if (others.size() >= kMaxOtherResources) break;
  }
  return others;
}

// A missing request equals the limit. The API server fills it in for pods, but not for templates.
Resources ReadRequests(Fields& container, const std::string& gpu_resource) {
  Resources requests, limits;
  container.Object("resources", [&](Fields& resources) {
    requests = ReadResources(resources, "requests", gpu_resource);
    limits = ReadResources(resources, "limits", gpu_resource);
  });
  if (requests.gpus == 0) requests.gpus = limits.gpus;
  requests.others.merge(limits.others);
  if (requests.cpu_millis == 0) requests.cpu_millis = limits.cpu_millis;
  if (requests.memory_bytes == 0) requests.memory_bytes = limits.memory_bytes;
  return requests;
}

// Resources that the kubelet has allocated, by container name. During an in-place resize they may
// exceed the container's request.
using SetAside = std::map<std::string, Resources>;

SetAside ReadSetAside(Fields& status, const std::string& gpu_resource) {
  SetAside set_aside;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    status.Objects(list, kMaxContainers, [&](Fields& container) {
      if (!container.Has("resources") && !container.Has("allocatedResources")) return;
      Resources present = ReadResources(container, "allocatedResources", gpu_resource);
      container.Object("resources", [&](Fields& resources) {
        present = Larger(present, ReadResources(resources, "requests", gpu_resource));
      });
      set_aside[container.String("name")] = present;
    });
  }
  return set_aside;
}

Resources ReadPod(Fields& spec, const SetAside& set_aside, const std::string& gpu_resource) {
  const auto read_container = [&](Fields& container) {
    const Resources requests = ReadRequests(container, gpu_resource);
    if (set_aside.empty()) return requests;
    const auto present = set_aside.find(container.String("name"));
    return present == set_aside.end() ? requests : Larger(requests, present->second);
  };
  Resources together;  // containers, which run at the same time
  spec.Objects("containers", kMaxContainers,
               [&](Fields& container) { together = Sum(together, read_container(container)); });
  Resources sidecars;  // init containers that keep running
  Resources starting;  // the largest init container, with the sidecars started before it
  spec.Objects("initContainers", kMaxContainers, [&](Fields& container) {
    const Resources own = read_container(container);
    starting = Larger(starting, Sum(own, sidecars));
    if (container.String("restartPolicy") == "Always") sidecars = Sum(sidecars, own);
  });
  // Pod-level requests, if set, are at least the sum of those of its containers.
  const Resources all =
      Larger(Larger(Sum(together, sidecars), starting), ReadRequests(spec, gpu_resource));
  return Sum(all, ReadResources(spec, "overhead", gpu_resource));
}

}  // namespace

std::int64_t Resources::GpusOf(const std::string& resource) const {
  if (resource.empty()) return gpus;
  auto found = others.find("");
  if (found == others.end()) found = others.find(resource);
  return found == others.end() ? 0 : found->second;
}

planner::Resources Resources::CountedAs(const std::string& resource) const {
  return {.gpus = GpusOf(resource), .cpu_millis = cpu_millis, .memory_bytes = memory_bytes};
}

Resources ReadResources(Fields& fields, const char* name, const std::string& gpu_resource) {
  Resources resources;
  fields.Object(name, [&](Fields& list) {
    resources.gpus = ReadQuantity(list, gpu_resource.c_str(), ParseQuantity);
    resources.cpu_millis = ReadQuantity(list, "cpu", ParseQuantityMillis);
    resources.memory_bytes = ReadQuantity(list, "memory", ParseQuantity);
    resources.others = ReadOthers(list, gpu_resource);
  });
  return resources;
}

Resources ReadPodRequests(Fields& spec, const std::string& gpu_resource) {
  return ReadPod(spec, {}, gpu_resource);
}

Resources ReadTakenBy(const nlohmann::json& pod, const std::string& gpu_resource) {
  Fields root(pod);
  SetAside set_aside;
  root.Object("status", [&](Fields& status) { set_aside = ReadSetAside(status, gpu_resource); });
  Resources taken;
  root.Object("spec", [&](Fields& spec) { taken = ReadPod(spec, set_aside, gpu_resource); });
  if (root.error()) {
    return {.gpus = INT64_MAX,
            .cpu_millis = INT64_MAX,
            .memory_bytes = INT64_MAX,
            .others = {{"", INT64_MAX}}};
  }
  return taken;
}

}  // namespace pliant::api
