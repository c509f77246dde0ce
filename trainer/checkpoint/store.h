#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pliant {

struct StoredObject {
  std::string name;
  std::uint64_t bytes = 0;
  bool operator==(const StoredObject&) const = default;
};

// Where checkpoints lie: a flat set of named objects, as an object store or a directory offers it.
// Names are relative, with '/' between their parts. Nothing is ever renamed by the caller.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // Writes an object from `parts`, one behind the other. When it returns without error the object
  // survives a crash of the machine; until then the object is the one before, if any, or this one.
  virtual Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) = 0;

  // Fills `out` from `offset` on. kNotFound: no such object. kCorrupt: it is shorter.
  virtual Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) = 0;

  // The objects whose names begin with `prefix`, in order of name. A Put that did not end may have
  // left one of another name.
  virtual Result<std::vector<StoredObject>> List(std::string_view prefix) = 0;

  // Fine when there is none.
  virtual Status Remove(std::string_view name) = 0;
};

}  // namespace pliant
