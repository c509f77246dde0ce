#pragma once

#include <cstdint>

namespace pliant {

// Calls of operator new in this process, on all of its threads. Linking it replaces the operator.
std::uint64_t Allocations();

}  // namespace pliant
