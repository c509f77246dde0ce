#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace pliant {

// The counter of the newest membership that this term's coordinator may have sent. It is on stable
// storage, so that a restarted process never issues the same membership id again.
class CounterFile {
 public:
  // `folder` is created if needed.
  CounterFile(std::filesystem::path folder, std::uint64_t term);

  // Returns 0 if this term has not written a counter: a new term starts from 0. kConflict if a
  // higher term has written here, kCorrupt if the file is not a counter.
  Result<std::uint64_t> Read() const;
  // After it returns without an error, the counter survives a crash of the machine.
  Status Write(std::uint64_t counter) const;

 private:
  const std::filesystem::path path_;
  const std::uint64_t term_;
};

}  // namespace pliant
