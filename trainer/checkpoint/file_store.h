#pragma once

#include <filesystem>

#include "trainer/checkpoint/store.h"

namespace pliant {

// A directory. An object is written to a temporary file beside its name, flushed, and renamed.
class FileStore final : public CheckpointStore {
 public:
  // `root` is made when something is first put into it.
  explicit FileStore(std::filesystem::path root);

  Status Put(std::string_view name, std::span<const std::span<const std::byte>> parts) override;
  Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::vector<StoredObject>> List(std::string_view prefix) override;
  Status Remove(std::string_view name) override;

 private:
  const std::filesystem::path root_;
};

}  // namespace pliant
