#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/collective/peer_transport.h"

namespace pliant {

// Makes a payload from a text.
inline Bytes TextPayload(std::string_view text) {
  const auto owner = std::make_shared<const std::string>(text);
  return {.owner = owner, .view = std::as_bytes(std::span(*owner))};
}
inline std::string_view TextOfPayload(const Bytes& payload) {
  return {reinterpret_cast<const char*>(payload.view.data()), payload.view.size()};
}

// Writes the payload of a small frame: little-endian, like all machines of a job.
class WireWriter {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  void Put(T value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
  }
  void PutText(std::string_view text) {
    Put(static_cast<std::uint32_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  Bytes Take() {
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes_));
    const std::span<const std::byte> view = *owner;
    return {.owner = std::move(owner), .view = view};
  }

 private:
  std::vector<std::byte> bytes_;
};

// Reads such a payload. Past its end every value is zero and ok() is false.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
    requires std::is_arithmetic_v<T>
  T Get() {
    T value{};
    const std::span<const std::byte> part = Next(sizeof(value));
    if (part.size() == sizeof(value)) std::memcpy(&value, part.data(), sizeof(value));
    return value;
  }
  std::string_view GetText() {
    const std::span<const std::byte> part = Next(Get<std::uint32_t>());
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::byte> Next(std::size_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace pliant
