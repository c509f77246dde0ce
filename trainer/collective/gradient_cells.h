#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/collective/buckets.h"

namespace pliant {

// The cells of a flat gradient: each tensor is cut into cells of 2,048 elements, counted from its
// start; its last cell may be smaller. Sums over a whole gradient are sums of cells, added up by a
// fixed tree. So they do not depend on who holds which cells, on buckets, or on threads.
class GradientCells {
 public:
  static constexpr std::size_t kElements = 2048;  // of a cell, at most

  GradientCells() = default;
  // Not explicit: a gradient of one tensor is described by its size.
  GradientCells(std::size_t elements);  // NOLINT(google-explicit-constructor)
  // `tensors`: the number of elements of each.
  explicit GradientCells(std::span<const std::size_t> tensors);

  std::size_t elements() const { return begins_.back(); }
  std::size_t count() const { return begins_.size() - 1; }
  ElementRange RangeOf(std::size_t cell) const {  // cell < count()
    return {.begin = begins_[cell], .size = begins_[cell + 1] - begins_[cell]};
  }
  std::size_t CellOf(std::size_t element) const;  // element < elements()

 private:
  std::vector<std::size_t> begins_ = {0};  // of each cell, and the end of the last one
};

// The sum of values of cells: neighbours are added first, then neighbouring sums, until one is
// left.
double SumOfCells(std::vector<double> values);

}  // namespace pliant
