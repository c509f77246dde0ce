#include "trainer/collective/gradient_cells.h"

#include <algorithm>

namespace pliant {

GradientCells::GradientCells(std::size_t elements)
    : GradientCells(std::span<const std::size_t>(&elements, 1)) {}

GradientCells::GradientCells(std::span<const std::size_t> tensors) {
  for (const std::size_t size : tensors) {
    const std::size_t end = elements() + size;
    while (elements() < end) begins_.push_back(std::min(elements() + kElements, end));
  }
}

std::size_t GradientCells::CellOf(std::size_t element) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, element) - begins_.begin()) - 1;
}

double SumOfCells(std::vector<double> values) {
  std::size_t count = values.size();
  if (count == 0) return 0;
  for (; count > 1; count = (count + 1) / 2) {
    for (std::size_t i = 0; i + 1 < count; i += 2) values[i / 2] = values[i] + values[i + 1];
    if (count % 2 == 1) values[count / 2] = values[count - 1];
  }
  return values.front();
}

}  // namespace pliant
