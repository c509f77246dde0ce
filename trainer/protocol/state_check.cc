#include "trainer/protocol/state_check.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "base/json.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/checkpoint/device_memory.h"
#include "trainer/data/permutation.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxShownValue = 60;
// The key by which a program marks a value that JSON lacks; its parts are in "items".
constexpr const char* kTag = "__pliant__";

std::string TextIn(std::span<const std::byte> memory) {
  std::uint64_t length = 0;
  if (memory.size() < sizeof(length)) return "";
  std::memcpy(&length, memory.data(), sizeof(length));
  memory = memory.subspan(sizeof(length));
  if (length > memory.size() || length > StateDigest::kMaxText) return "";
  return {reinterpret_cast<const char*>(memory.data()), length};
}

bool IsProgramsOwn(std::string_view name) {
  return !name.starts_with(kModelPrefix) && !name.starts_with("optimizer.") &&
         !name.starts_with("buffers.");
}

std::uint64_t Total(const StateDigest& digest) {
  std::uint64_t total = digest.runtime;
  for (const std::uint64_t tensor : digest.tensors) total = HashWords({total, tensor});
  return total;
}

std::string Shown(const Json* value) {
  if (value == nullptr) return "absent";
  std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxShownValue) text = text.substr(0, kMaxShownValue) + "...";
  return text;
}

const Json* Find(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// The first value that differs. ParseJson limits the depth.
std::optional<StateMismatch> FirstDifference(const Json* own, const Json* other,
                                             const std::string& path) {
  if (own != nullptr && other != nullptr) {
    if (*own == *other) return std::nullopt;
    if (own->is_object() && other->is_object()) {
      const bool tagged = own->contains(kTag) && own->contains("items") && other->contains("items");
      if (tagged) return FirstDifference(Find(*own, "items"), Find(*other, "items"), path);
      Json keys = *own;
      keys.update(*other);
      for (const auto& [key, unused] : keys.items()) {
        auto inside = FirstDifference(Find(*own, key), Find(*other, key),
                                      path.empty() ? key : path + "." + key);
        if (inside) return inside;
      }
    }
    if (own->is_array() && other->is_array() && own->size() == other->size()) {
      for (std::size_t i = 0; i < own->size(); ++i) {
        auto inside = FirstDifference(&(*own)[i], &(*other)[i], Format("{}[{}]", path, i));
        if (inside) return inside;
      }
    }
  } else if (own == other) {
    return std::nullopt;
  }
  return StateMismatch{.name = path, .own = Shown(own), .other = Shown(other), .of_program = true};
}

}  // namespace

Result<StateDigest> DigestOf(const StateDict& state) {
  StateDigest digest;
  std::vector<std::byte> copy;  // of a tensor on a device
  for (const TensorView& tensor : state) {
    if (tensor.name.starts_with(kLocalPrefix)) {
      digest.tensors.push_back(0);
      continue;
    }
    std::span<const std::byte> bytes = tensor.bytes;
    if (tensor.device != nullptr) {
      copy.resize(tensor.bytes.size());
      const DeviceMemory::ToHost read{.device = tensor.bytes.data(), .host = copy};
      RETURN_IF_ERROR(tensor.device->Read({&read, 1}));
      bytes = copy;
    }
    digest.tensors.push_back(ChecksumOf(bytes));
    if (digest.text.empty() && tensor.name.ends_with(kJsonSuffix)) digest.text = TextIn(bytes);
  }
  return digest;
}

std::uint64_t RuntimeChecksum(const NoiseWindow& noise, const BatchSegments& batches) {
  std::uint64_t checksum = HashWords({std::bit_cast<std::uint64_t>(noise.trace),
                                      std::bit_cast<std::uint64_t>(noise.square),
                                      std::bit_cast<std::uint64_t>(noise.steps)});
  for (const BatchSegment& segment : batches) {
    checksum = HashWords({checksum, segment.epoch, static_cast<std::uint64_t>(segment.doublings)});
  }
  return checksum;
}

std::vector<int> DifferingRanks(std::span<const std::optional<StateDigest>> digest_of_rank) {
  std::vector<std::optional<std::uint64_t>> totals;
  for (const std::optional<StateDigest>& digest : digest_of_rank)
    totals.push_back(digest ? std::optional(Total(*digest)) : std::nullopt);
  std::optional<std::uint64_t> majority;
  std::ptrdiff_t most = 0;
  for (const std::optional<std::uint64_t>& total : totals) {
    if (!total) continue;
    const auto holders = std::ranges::count(totals, total);
    if (holders <= most) continue;
    most = holders;
    majority = total;
  }
  std::vector<int> differing;
  for (std::size_t rank = 0; rank < totals.size(); ++rank) {
    if (totals[rank] && totals[rank] != majority) differing.push_back(static_cast<int>(rank));
  }
  return differing;
}

StateMismatch MismatchOf(const StateDict& shape, const StateDigest& own, const StateDigest& other) {
  std::optional<StateMismatch> found;
  const std::size_t tensors = std::min({shape.size(), own.tensors.size(), other.tensors.size()});
  for (std::size_t i = 0; i < tensors; ++i) {
    if (own.tensors[i] == other.tensors[i]) continue;
    const std::string& name = shape[i].name;
    if (name.ends_with(kJsonSuffix)) {
      // An error of the program shows here first, and in the parameters a step later.
      const Json own_text = ParseJson(own.text);
      const Json other_text = ParseJson(other.text);
      if (!own_text.is_discarded() && !other_text.is_discarded()) {
        if (auto inside = FirstDifference(&own_text, &other_text, "")) return *std::move(inside);
      }
    }
    const bool of_program = IsProgramsOwn(name);
    if (!found || (of_program && !found->of_program))
      found = {.name = name, .own = "", .other = "", .of_program = of_program};
  }
  if (found) return *std::move(found);
  return {.name = "noise scale or batch size", .own = "", .other = "", .of_program = false};
}

}  // namespace pliant
