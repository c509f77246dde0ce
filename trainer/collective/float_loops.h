#pragma once

#include <cstddef>

namespace pliant {

// The operations on gradients, from a parameter's gradient to the root of the tree: elementwise in
// fp32, with the widest vectors that the processor has. Every element is one IEEE operation
// whatever their width is, so the bits are the same. `out` may be one of the operands.
void AddInto(float* out, const float* left, const float* right, std::size_t size);
void DivideInto(float* out, const float* values, float divisor, std::size_t size);
void MultiplyInto(float* out, const float* values, float factor, std::size_t size);
// (left + right) / divisor
void AddDivideInto(float* out, const float* left, const float* right, float divisor,
                   std::size_t size);

// The sum of the squares of at most a few thousand values, in fp64: eight lanes, of which lane i
// adds up every eighth square from the i-th on, and then the lanes in one fixed order. The square
// of a float is exact in fp64, so the bits do not depend on the width of the vectors or on fused
// operations.
double SquareOf(const float* values, std::size_t size);
inline constexpr std::size_t kSquareLanes = 8;
// The same, where the lanes were added up elsewhere.
double SumOfLanes(const double* lanes);

// Copies past the caches, for data that is larger than they are and not read soon: no line is
// fetched only to be overwritten. `out` is on a cache-line boundary.
void CopyStreamed(float* out, const float* values, std::size_t size);

}  // namespace pliant
