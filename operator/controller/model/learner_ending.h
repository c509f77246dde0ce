#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/api/pod.h"

namespace pliant::controller {

enum class LearnerEnd {
  kCompleted,  // the training is complete
  kDrained,    // it left on request, as it reports itself
  kDisrupted,  // it was evicted, preempted or deleted: nobody's failure
  kNodeFault,  // the node refused it or lost it: the node's failure, not the program's
  kFailed,     // the program's failure
};

// How a learner's pod ended, from its status and its termination message (docs/contracts.md §3).
struct LearnerEnding {
  LearnerEnd end = LearnerEnd::kFailed;
  std::optional<int> exit_code;  // of container `learner`; nullopt if that did not run
  std::string message;
  std::optional<std::int64_t> step;  // the last that it committed, if it reported one
  std::string parameters_sha256;
  std::optional<api::WallTime> finished;
  bool operator==(const LearnerEnding&) const = default;
};

// "code 1", "code 139 (SIGSEGV)": container runtimes report signal n as 128 + n.
std::string DescribeExitCode(int exit_code);

// nullopt while the pod lives.
std::optional<LearnerEnding> EndingOf(const api::Pod& pod);

}  // namespace pliant::controller
