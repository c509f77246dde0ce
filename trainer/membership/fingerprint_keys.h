#pragma once

namespace pliant {

// Why a learner cannot use the GPUs that its container holds. The coordinator tells the job's
// owner. The only one that may differ among learners: it is about what containers hold, and those
// that compute alike need not hold the same.
inline constexpr const char* kFingerprintGpuProblem = "gpuProblem";

}  // namespace pliant
