#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

// What the system says of a volume: "write /checkpoints/x: No space left on device".
Error VolumeError(std::string_view doing, int system_error);

// Why a checkpoint could not be written, as a job's condition names it: "VolumeFull",
// "VolumeReadOnly" or "WriteFailed".
std::string_view WriteProblemOf(const Error& error);

}  // namespace pliant
