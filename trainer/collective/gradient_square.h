#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "trainer/collective/buckets.h"

namespace pliant {

// |gradient|² in fp64: the sums of the squares of chunks of 2,048 elements, added up from the first
// chunk to the last. The chunks are cut from the whole flat gradient, so the bits do not depend on
// the buckets in which it becomes final.
class GradientSquare {
 public:
  static constexpr std::size_t kChunk = 2048;  // elements

  // That of a gradient whose elements are all there.
  static double Of(std::span<const float> gradient);

  // Begins another gradient.
  void Begin(std::size_t elements);
  // These elements are final. Each element is added once; afterwards it may change.
  void Add(std::span<const float> gradient, ElementRange range);
  // All elements were added.
  double Sum() const;

 private:
  // A chunk whose elements become final in several parts: a copy of those that are.
  struct Parts {
    std::size_t missing = 0;
    std::vector<float> values;
  };

  std::size_t elements_ = 0;
  std::vector<double> chunks_;          // of each chunk, once it is whole
  std::map<std::size_t, Parts> parts_;  // by chunk
};

}  // namespace pliant
