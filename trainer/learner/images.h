#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/learner/dataset_spec.h"

namespace pliant::learner {

// The model's input value for each value of a pixel, by channel.
using PixelTable = std::vector<std::array<float, 256>>;
PixelTable MakePixelTable(const DatasetSpec& spec, std::int64_t channels);

// The placement of an image: it is moved right and down by these numbers of pixels (the gap is
// black), then mirrored.
struct Placement {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;
  bool operator==(const Placement&) const = default;
};
// Drawn only from the shard's seed and the sample.
Placement DrawPlacement(const Augment& augment, std::uint64_t shard_seed, std::uint64_t sample);

// Writes one image as the model's input to `values`, which has as many elements as `pixels`.
void WriteImage(std::span<const std::uint8_t> pixels, const Shape& shape, const PixelTable& table,
                const Placement& placement, std::span<float> values);

}  // namespace pliant::learner
