#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/store.h"

namespace pliant {

// A volume in memory, for tests and simulations, with faults on demand.
class MemoryStore final : public CheckpointStore {
 public:
  // The fault of one operation that writes (Put, Replace or Remove).
  enum class Fault {
    kNone,
    kFail,      // it returns kUnavailable and did nothing
    kFailDone,  // it returns kUnavailable, but it was done
    kFailTorn,  // it returns kUnavailable and left a torn object, which a real store never does
  };
  // Called before every Put, Replace (of `to`) and Remove, with the operation's number (from 0) and
  // the object's name.
  std::function<Fault(std::uint64_t operation, std::string_view name)> fault;
  // The maximum sum of all objects' bytes. A Put beyond it fails as on a full volume.
  std::optional<std::uint64_t> capacity;

  Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) override;
  Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::vector<StoredObject>> List(std::string_view prefix) override;
  Status Replace(std::string_view from, std::string_view to) override;
  Status Remove(std::string_view name) override;

  std::map<std::string, std::vector<std::byte>>& objects() { return objects_; }
  std::uint64_t operations() const { return operations_; }

 private:
  std::uint64_t BytesBeside(std::string_view name) const;

  std::map<std::string, std::vector<std::byte>> objects_;
  std::uint64_t operations_ = 0;
};

}  // namespace pliant
