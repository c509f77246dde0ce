#pragma once

#include <cstddef>

namespace pliant {

// Bytes that the program holds from operator new. A program that calls this gets an operator new
// that counts. Not available under sanitizers, which replace operator new themselves.
std::ptrdiff_t LiveBytes();

}  // namespace pliant
