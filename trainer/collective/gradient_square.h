#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "trainer/collective/buckets.h"
#include "trainer/collective/gradient_cells.h"

namespace pliant {

// |gradient|² in fp64: the square of each cell, then SumOfCells. It is not finite if and only if an
// element is not: the sum of squares of floats does not overflow a double.
class GradientSquare {
 public:
  // That of a gradient whose elements are all there.
  static double Of(const GradientCells& cells, std::span<const float> gradient);
  // The same, of tensors that lie anywhere, with `cells` of their sizes. nullptr: counts as zero.
  static double Of(const GradientCells& cells, std::span<const std::size_t> sizes,
                   std::span<const float* const> tensors);

  // The same of kSquareLanes sums for each cell, as a device computes them.
  static double OfLanes(std::span<const double> lanes);

  // Begins another gradient. `cells` outlive it.
  void Begin(const GradientCells& cells);
  // These elements are final. Each element is added once; afterwards it may change.
  void Add(std::span<const float> gradient, ElementRange range);
  // All elements were added.
  double Sum() const;

 private:
  // A cell whose elements become final in several parts: a copy of those that are.
  struct Parts {
    std::size_t missing = 0;
    std::vector<float> values;
  };

  const GradientCells* cells_ = nullptr;
  std::vector<double> squares_;         // of each cell, once it is whole
  std::map<std::size_t, Parts> parts_;  // by cell
};

}  // namespace pliant
