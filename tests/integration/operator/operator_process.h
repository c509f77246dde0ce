#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pliant {

// The operator's program as a separate process; it is killed with this object.
class OperatorProcess {
 public:
  // Its log goes to `log_file` if that is not empty.
  explicit OperatorProcess(const std::vector<std::string>& arguments,
                           const std::string& log_file = "");
  ~OperatorProcess() { Kill(); }
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  void Kill();  // SIGKILL
  // Sends SIGTERM. Returns the exit code, or nullopt if the process does not end within `limit`.
  std::optional<int> Stop(std::chrono::milliseconds limit);
  bool HasEnded() const;  // whether it ended by itself
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;  // 0 after its end
};

}  // namespace pliant
