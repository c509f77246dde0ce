#pragma once

#include <cstddef>

namespace pliant {

// How many bytes the program has from operator new, which is replaced by one that counts in every
// program that calls this. Not under the sanitizers: they have an operator new of their own.
std::ptrdiff_t LiveBytes();

}  // namespace pliant
