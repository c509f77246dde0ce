#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

// A system error on a volume, as in "write /checkpoints/x: No space left on device".
Error VolumeError(std::string_view doing, int system_error);

// The reason in the job's condition if a checkpoint could not be written: "VolumeFull",
// "VolumeReadOnly" or "WriteFailed".
std::string_view WriteProblemOf(const Error& error);

}  // namespace pliant
