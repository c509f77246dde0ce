#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/api/pod.h"

namespace pliant::controller {

enum class LearnerEnd {
  kCompleted,  // the training is complete
  kDrained,    // it left as it was told to, or so it says
  kDisrupted,  // it was evicted, preempted or deleted: nobody's failure
  kNodeFault,  // the node refused it or lost it: the node's failure, not the program's
  kFailed,     // the program's failure
};

// How a learner's pod ended, from its status and its last words (docs/contracts.md §3).
struct LearnerEnding {
  LearnerEnd end = LearnerEnd::kFailed;
  std::optional<int> exit_code;  // of container `learner`; nothing if that did not run
  std::string message;
  std::optional<std::int64_t> step;  // the last that it committed, if it said so
  std::string parameters_sha256;
  std::optional<api::WallTime> finished;
  bool operator==(const LearnerEnding&) const = default;
};

// "code 1", "code 139 (SIGSEGV)": 128 + n is what a container's runtime makes of signal n.
std::string DescribeExitCode(int exit_code);

// Nothing while the pod lives.
std::optional<LearnerEnding> EndingOf(const api::Pod& pod);

}  // namespace pliant::controller
