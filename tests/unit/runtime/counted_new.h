#pragma once

#include <cstdint>

namespace pliant {

// Calls of operator new, and of aligned_alloc, in this process, on all of its threads. Linking it
// replaces both.
std::uint64_t Allocations();

}  // namespace pliant
