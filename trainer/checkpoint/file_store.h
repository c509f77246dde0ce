#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trainer/checkpoint/store.h"

namespace pliant {

// The suffix of a file that is being written. If its writer is killed, the file stays until its
// directory is pruned; or until the next Put overwrites it, if writers have no name of their own.
inline constexpr std::string_view kTemporarySuffix = ".part";

// A store in a directory. An object is written to a temporary file next to it, synced, and renamed.
class FileStore final : public CheckpointStore {
 public:
  // The first Put creates `root`. `writer` becomes part of the names of temporary files; it must be
  // unique if several writers may put the same object at once, as learners that publish slices do.
  explicit FileStore(std::filesystem::path root, std::string_view writer = {});

  Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) override;
  Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::vector<StoredObject>> List(std::string_view prefix) override;
  // Without an exchange of names (NFS), a crash in the middle leaves `to` missing, the old objects
  // below `to`.old and the new ones below `from`.
  Status Replace(std::string_view from, std::string_view to) override;
  Status Remove(std::string_view name) override;

 private:
  const std::filesystem::path root_;
  const std::string temporary_suffix_;
};

}  // namespace pliant
