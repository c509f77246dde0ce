#pragma once

#include <ostream>

namespace pliant {

// The program pliant-checkpoint: lists, verifies and exports the checkpoints of jobs. Returns its
// exit code: 0 success; 1 something is missing, damaged, or cannot be read or written; 2 wrong
// usage.
int RunCheckpointTool(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace pliant
