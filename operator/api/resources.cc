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

Resources Sum(const Resources& a, const Resources& b) {
  return {.gpus = BoundedSum(a.gpus, b.gpus),
          .cpu_millis = BoundedSum(a.cpu_millis, b.cpu_millis),
          .memory_bytes = BoundedSum(a.memory_bytes, b.memory_bytes)};
}

Resources Larger(const Resources& a, const Resources& b) {
  return {.gpus = std::max(a.gpus, b.gpus),
          .cpu_millis = std::max(a.cpu_millis, b.cpu_millis),
          .memory_bytes = std::max(a.memory_bytes, b.memory_bytes)};
}

std::int64_t ReadQuantity(Fields& list, const char* name,
                          Result<std::int64_t> (*parse)(std::string_view)) {
  const std::string text = list.StringOrNumber(name, "0");
  const Result<std::int64_t> number = parse(text);
  if (number) return *number;
  list.Wrong(name, number.error().message);
  return 0;
}

// A missing request equals the limit. The API server fills it in for pods, but not for templates.
Resources ReadRequests(Fields& container, const std::string& gpu_resource) {
  Resources requests, limits;
  container.Object("resources", [&](Fields& resources) {
    requests = ReadResources(resources, "requests", gpu_resource);
    limits = ReadResources(resources, "limits", gpu_resource);
  });
  if (requests.gpus == 0) requests.gpus = limits.gpus;
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

Resources ReadResources(Fields& fields, const char* name, const std::string& gpu_resource) {
  Resources resources;
  fields.Object(name, [&](Fields& list) {
    resources.gpus = ReadQuantity(list, gpu_resource.c_str(), ParseQuantity);
    resources.cpu_millis = ReadQuantity(list, "cpu", ParseQuantityMillis);
    resources.memory_bytes = ReadQuantity(list, "memory", ParseQuantity);
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
  if (root.error()) return {.gpus = INT64_MAX, .cpu_millis = INT64_MAX, .memory_bytes = INT64_MAX};
  return taken;
}

}  // namespace pliant::api
