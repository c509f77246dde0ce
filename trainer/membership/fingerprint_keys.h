#pragma once

namespace pliant {

// The reason why a learner cannot use the GPUs of its container. The coordinator reports it to the
// job's owner. The only key that may differ among learners: it describes the container, and
// learners that compute alike may have different containers.
inline constexpr const char* kFingerprintGpuProblem = "gpuProblem";

}  // namespace pliant
