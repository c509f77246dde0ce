#include "trainer/collective/gradient_square.h"

#include <algorithm>

#include "base/check.h"
#include "base/divide.h"
#include "trainer/collective/float_loops.h"

namespace pliant {

double GradientSquare::Of(std::span<const float> gradient) {
  double sum = 0;
  for (std::size_t begin = 0; begin < gradient.size(); begin += kChunk)
    sum += SquareOf(gradient.data() + begin, std::min(kChunk, gradient.size() - begin));
  return sum;
}

void GradientSquare::Begin(std::size_t elements) {
  elements_ = elements;
  chunks_.assign(DivideUp(elements, kChunk), 0);
  parts_.clear();
}

void GradientSquare::Add(std::span<const float> gradient, ElementRange range) {
  for (std::size_t begin = range.begin; begin < range.end();) {
    const std::size_t chunk = begin / kChunk;
    const std::size_t first = chunk * kChunk;
    const std::size_t size = std::min(kChunk, elements_ - first);
    const std::size_t end = std::min(first + size, range.end());
    if (end - begin == size) {
      chunks_[chunk] = SquareOf(gradient.data() + first, size);
    } else {
      const auto [found, is_new] = parts_.try_emplace(chunk);
      Parts& parts = found->second;
      if (is_new) parts = {.missing = size, .values = std::vector<float>(size)};
      std::ranges::copy(gradient.subspan(begin, end - begin),
                        parts.values.begin() + static_cast<std::ptrdiff_t>(begin - first));
      parts.missing -= end - begin;
      if (parts.missing == 0) {
        chunks_[chunk] = SquareOf(parts.values.data(), size);
        parts_.erase(found);
      }
    }
    begin = end;
  }
}

double GradientSquare::Sum() const {
  CHECK(parts_.empty(), "all elements are final");
  double sum = 0;
  for (const double chunk : chunks_) sum += chunk;
  return sum;
}

}  // namespace pliant
