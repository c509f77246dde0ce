#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/event_loop.h"

namespace pliant {

struct OutputKeeperOptions {
  // Maximum size of the file. A full file is renamed to ".1", in place of the one before.
  std::size_t max_file_bytes = 4 << 20;
  // Maximum size of the text that is not written yet. A volume that hangs, or is full, costs lines,
  // never time.
  std::size_t max_waiting_bytes = 1 << 20;
  // How many files of other learners are left in the folder: the newest.
  std::size_t max_files = 64;
  // How long the destructor and Flush wait for text that is not written.
  Duration max_flush = std::chrono::seconds(2);
};

// Keeps a copy of a learner's output in a file next to the checkpoints, because `kubectl logs` ends
// with the pod. Text that cannot be written is left out, with a line that says how much. Any
// thread.
class OutputKeeper {
 public:
  virtual ~OutputKeeper() = default;
  // Never waits for the file.
  virtual void Keep(std::string_view text) = 0;
  // Waits for the file, as the destructor does.
  virtual void Flush() = 0;
};

// Creates the folder. The thread may outlive the object, if the volume hangs.
std::unique_ptr<OutputKeeper> NewOutputKeeper(const std::filesystem::path& path,
                                              OutputKeeperOptions options = {});

}  // namespace pliant
