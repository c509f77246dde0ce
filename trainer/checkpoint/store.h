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

// The storage of checkpoints: a flat set of named objects, as in an object store or a directory.
// Names are relative, with '/' between their parts.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // Writes an object from `parts`, one after another. When it returns without error the object
  // survives a crash of the machine; before that a reader finds either the old object or this one.
  virtual Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) = 0;

  // Fills `out` from `offset` on. kNotFound: no such object. kCorrupt: it is shorter.
  virtual Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) = 0;

  // The objects whose names begin with `prefix`, in order of name. An interrupted Put may have left
  // an object under another name.
  virtual Result<std::vector<StoredObject>> List(std::string_view prefix) = 0;

  // The objects below directory `from` take the place of those below `to`: a crash leaves the old
  // ones or these whole, under `to`.
  virtual Status Replace(std::string_view from, std::string_view to) {
    (void)from;
    return Fail(ErrorCode::kInvalid, "this store cannot replace " + std::string(to));
  }

  // A missing object is no error.
  virtual Status Remove(std::string_view name) = 0;
};

}  // namespace pliant
