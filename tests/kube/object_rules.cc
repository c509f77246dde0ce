#include "tests/kube/object_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include <openssl/evp.h>

#include "base/base64.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

constexpr int kDefaultGrace = 30;

std::string ToBase64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

bool IsDnsLabel(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, allowed) &&
         !name.starts_with('-') && !name.ends_with('-');
}

json Gates(const json& pod) {
  return pod.value("/spec/schedulingGates"_json_pointer, json::array());
}

}  // namespace

void EncodeSecret(json& secret) {
  if (!secret.contains("stringData")) return;
  for (const auto& [name, text] : secret["stringData"].items()) {
    secret["data"][name] = ToBase64(text.get<std::string>());
  }
  secret.erase("stringData");
}

std::optional<WrongField> FindWrongFieldOfPod(const json& pod) {
  const json containers = pod.value("/spec/containers"_json_pointer, json::array());
  if (containers.empty()) return WrongField{"spec.containers", "Required value"};
  for (const json& container : containers) {
    if (!IsDnsLabel(container.value("name", ""))) {
      return WrongField{"spec.containers[].name",
                        "a lowercase RFC 1123 label must consist of "
                        "lower case alphanumeric characters or '-'"};
    }
  }
  return std::nullopt;
}

std::optional<WrongField> FindForbiddenChangeOfPod(const json& before, const json& after) {
  for (const json& gate : Gates(after)) {
    if (!std::ranges::contains(Gates(before), gate)) {
      return WrongField{"spec.schedulingGates", "only deletion is allowed"};
    }
  }
  const auto rest = [](json spec) {
    spec.erase("schedulingGates");
    return spec;
  };
  if (rest(before.at("spec")) != rest(after.at("spec"))) {
    return WrongField{"spec", "pod updates may not change fields other than schedulingGates"};
  }
  return std::nullopt;
}

int GraceOf(const json& pod, std::optional<int> asked) {
  const std::string phase = pod.value("/status/phase"_json_pointer, "");
  const bool has_kubelet = !pod.value("/spec/nodeName"_json_pointer, "").empty();
  if (!has_kubelet || phase == "Succeeded" || phase == "Failed") return 0;
  return asked.value_or(
      pod.value("/spec/terminationGracePeriodSeconds"_json_pointer, kDefaultGrace));
}

}  // namespace pliant::kube
