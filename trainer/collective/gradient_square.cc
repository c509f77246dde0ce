#include "trainer/collective/gradient_square.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/collective/float_loops.h"

namespace pliant {

double GradientSquare::Of(const GradientCells& cells, std::span<const float> gradient) {
  std::vector<double> squares(cells.count());
  for (std::size_t cell = 0; cell < cells.count(); ++cell) {
    const ElementRange range = cells.RangeOf(cell);
    squares[cell] = SquareOf(gradient.data() + range.begin, range.size);
  }
  return SumOfCells(std::move(squares));
}

double GradientSquare::Of(const GradientCells& cells, std::span<const std::size_t> sizes,
                          std::span<const float* const> tensors) {
  CHECK(sizes.size() == tensors.size(), "each tensor has a size");
  std::vector<double> squares(cells.count());
  std::size_t cell = 0;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for (std::size_t begin = 0; begin < sizes[tensor]; begin += cells.RangeOf(cell++).size) {
      if (tensors[tensor] == nullptr) continue;
      squares[cell] = SquareOf(tensors[tensor] + begin, cells.RangeOf(cell).size);
    }
  }
  CHECK(cell == cells.count(), "the cells are those of the tensors");
  return SumOfCells(std::move(squares));
}

double GradientSquare::OfLanes(std::span<const double> lanes) {
  std::vector<double> squares(lanes.size() / kSquareLanes);
  for (std::size_t cell = 0; cell < squares.size(); ++cell)
    squares[cell] = SumOfLanes(lanes.data() + cell * kSquareLanes);
  return SumOfCells(std::move(squares));
}

void GradientSquare::Begin(const GradientCells& cells) {
  cells_ = &cells;
  squares_.assign(cells.count(), 0);
  parts_.clear();
}

void GradientSquare::Add(std::span<const float> gradient, ElementRange range) {
  if (range.size == 0) return;
  std::size_t cell = cells_->CellOf(range.begin);
  for (std::size_t begin = range.begin; begin < range.end(); ++cell) {
    const auto [first, size] = cells_->RangeOf(cell);
    const std::size_t end = std::min(first + size, range.end());
    if (end - begin == size) {
      squares_[cell] = SquareOf(gradient.data() + first, size);
    } else {
      const auto [found, is_new] = parts_.try_emplace(cell);
      Parts& parts = found->second;
      if (is_new) parts = {.missing = size, .values = std::vector<float>(size)};
      std::ranges::copy(gradient.subspan(begin, end - begin),
                        parts.values.begin() + static_cast<std::ptrdiff_t>(begin - first));
      parts.missing -= end - begin;
      if (parts.missing == 0) {
        squares_[cell] = SquareOf(parts.values.data(), size);
        parts_.erase(found);
      }
    }
    begin = end;
  }
}

double GradientSquare::Sum() const {
  CHECK(parts_.empty(), "all elements are final");
  return SumOfCells(squares_);
}

}  // namespace pliant
