#pragma once

namespace pliant {

// Why a learner cannot use the GPUs that its container holds. The coordinator tells the job's
// owner.
inline constexpr const char* kFingerprintGpuProblem = "gpuProblem";

}  // namespace pliant
