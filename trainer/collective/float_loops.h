#pragma once

#include <cstddef>

namespace pliant {

// What gradients go through, from a parameter's to the root of the tree: elementwise in fp32, by
// the widest vectors that the processor has. Every element is one IEEE operation however wide they
// are: the bits are the same. Results may lie where an operand does.
void AddInto(float* out, const float* left, const float* right, std::size_t size);
void DivideInto(float* out, const float* values, float divisor, std::size_t size);
void MultiplyInto(float* out, const float* values, float factor, std::size_t size);
// (left + right) / divisor
void AddDivideInto(float* out, const float* left, const float* right, float divisor,
                   std::size_t size);

// Copies past the caches, for what is larger than they are and not read soon: no line is fetched
// only to be overwritten. `out` is on a cache-line boundary.
void CopyStreamed(float* out, const float* values, std::size_t size);

}  // namespace pliant
