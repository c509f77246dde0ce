#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace pliant {

// The counter of the newest membership that this term's coordinator may have sent: on stable
// storage, so that a restarted process never issues the same membership id again.
class CounterFile {
 public:
  // `folder` is made if needed.
  CounterFile(std::filesystem::path folder, std::uint64_t term);

  // 0 when this term has not written any: a new term starts over. kConflict when a higher term has
  // written here, kCorrupt when the file cannot be understood.
  Result<std::uint64_t> Read() const;
  // When it returns without error the counter survives a crash of the machine.
  Status Write(std::uint64_t counter) const;

 private:
  const std::filesystem::path path_;
  const std::uint64_t term_;
};

}  // namespace pliant
