#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/event_loop.h"

namespace pliant {

struct OutputKeeperOptions {
  // Of the file and, when it is full, of the one before it, ".1".
  std::size_t max_file_bytes = 4 << 20;
  // Of what is not written yet. A volume that hangs, or is full, costs lines, never time.
  std::size_t max_waiting_bytes = 1 << 20;
  // Files of other learners that are left in the folder: the newest.
  std::size_t max_files = 64;
  // How long the end waits for what is not written.
  Duration max_flush = std::chrono::seconds(2);
};

// Keeps a copy of what a learner says in a file beside the checkpoints: `kubectl logs` ends with
// the pod. What cannot be written is left out, with a line that says how much. Any thread.
class OutputKeeper {
 public:
  virtual ~OutputKeeper() = default;
  // Never waits for the file.
  virtual void Keep(std::string_view text) = 0;
  // Waits for it, as the end does.
  virtual void Flush() = 0;
};

// The folder is made. Its thread may outlive the object, if the volume hangs.
std::unique_ptr<OutputKeeper> NewOutputKeeper(const std::filesystem::path& path,
                                              OutputKeeperOptions options = {});

}  // namespace pliant
