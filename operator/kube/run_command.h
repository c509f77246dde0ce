#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"

namespace pliant::kube {

struct Command {
  std::string program;  // looked for in $PATH unless it holds a slash
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value": beside this process's own, or in place
  Duration time_most = std::chrono::seconds(30);
  std::size_t output_bytes_most = std::size_t{1} << 20;
};

struct CommandOutput {
  int exit_status = 0;  // 128 + n: ended by signal n
  std::string output;
  std::string complaint;  // the last of what it wrote to its standard error
};

// Runs a program, without a shell and with nothing to read, to its end; blocks. The program gets no
// descriptor of this process. One that takes too long, writes too much, or is no longer wanted is
// killed together with what it has started.
//   kNotFound  there is no such program, or it cannot be run
//   kTimeout, kInvalid (it wrote too much), kCancelled, kUnavailable, kInternal
Result<CommandOutput> RunCommand(const Command& command, const std::stop_token& stop = {});

}  // namespace pliant::kube
