#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "trainer/membership/messages.h"

namespace pliant {

// Kubernetes keeps this many bytes of a container's termination message.
inline constexpr std::size_t kMaxTerminationBytes = 4096;

// How a learner ended, for the operator (docs/contracts.md §3).
struct TerminationMessage {
  LeftReason reason = LeftReason::kFailed;
  bool broken = false;  // with kFailed: the machine's hardware is
  std::uint64_t step = 0;
  std::string message;
  std::string parameters_sha256;
};

// JSON of at most kMaxTerminationBytes bytes: a longer message is cut, at a whole character.
std::string Encode(const TerminationMessage& message);

Status WriteTerminationMessage(const std::filesystem::path& path,
                               const TerminationMessage& message);

}  // namespace pliant
