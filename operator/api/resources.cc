#include "operator/api/resources.h"

#include <algorithm>

#include "base/bounded.h"
#include "operator/api/quantity.h"

namespace pliant::api {
namespace {

constexpr std::size_t kContainersMax = 256;

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

// A request that is not given equals the limit; the API server fills that in for pods, not for
// templates.
Resources ReadContainer(Fields& container, const std::string& gpu_resource) {
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
  Resources together;  // containers that run side by side
  spec.Objects("containers", kContainersMax, [&](Fields& container) {
    together = Sum(together, ReadContainer(container, gpu_resource));
  });
  Resources sidecars;  // init containers that stay
  Resources starting;  // the most that an init container takes, with the sidecars before it
  spec.Objects("initContainers", kContainersMax, [&](Fields& container) {
    const Resources own = ReadContainer(container, gpu_resource);
    starting = Larger(starting, Sum(own, sidecars));
    if (container.String("restartPolicy") == "Always") sidecars = Sum(sidecars, own);
  });
  const Resources overhead = ReadResources(spec, "overhead", gpu_resource);
  return Sum(Larger(Sum(together, sidecars), starting), overhead);
}

}  // namespace pliant::api
