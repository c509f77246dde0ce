#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trainer/checkpoint/store.h"

namespace pliant {

// Of files that are being written. One that stays, since its writer was killed, is pruned with its
// directory; or it is overwritten, if the writer has no name of its own.
inline constexpr std::string_view kTemporarySuffix = ".part";

// A directory. An object is written to a temporary file beside its name, flushed, and renamed.
class FileStore final : public CheckpointStore {
 public:
  // `root` is made when something is first put into it. Who puts objects of the same name at a time
  // as others do, as who publishes slices may, has a name of its own for the temporary files.
  explicit FileStore(std::filesystem::path root, std::string_view writer = {});

  Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) override;
  Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::vector<StoredObject>> List(std::string_view prefix) override;
  Status Remove(std::string_view name) override;

 private:
  const std::filesystem::path root_;
  const std::string temporary_suffix_;
};

}  // namespace pliant
