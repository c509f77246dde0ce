#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pliant {

// The operator's program as a process of its own; killed with this object.
class OperatorProcess {
 public:
  explicit OperatorProcess(const std::vector<std::string>& arguments);
  ~OperatorProcess() { Kill(); }
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  void Kill();  // SIGKILL
  // SIGTERM. The exit code, or nothing if it does not end within `limit`.
  std::optional<int> Stop(std::chrono::milliseconds limit);
  bool HasEnded() const;  // by itself
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;  // 0: it has ended
};

}  // namespace pliant
