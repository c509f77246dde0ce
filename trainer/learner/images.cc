#include "trainer/learner/images.h"

#include <algorithm>

#include "base/check.h"
#include "trainer/data/permutation.h"
#include "trainer/data/random_stream.h"
#include "trainer/learner/digits_file.h"

namespace pliant::learner {
namespace {

constexpr std::uint64_t kPlacement = 1;  // separates these draws from others of the same seed

double Brightest(DataKind kind) { return kind == DataKind::kDigits ? kDigitBrightest : 255; }

double OfChannel(const std::vector<double>& values, std::size_t channel) {
  return values.size() == 1 ? values.front() : values[channel];
}

}  // namespace

PixelTable MakePixelTable(const DatasetSpec& spec, std::int64_t channels) {
  PixelTable table(static_cast<std::size_t>(channels));
  for (std::size_t channel = 0; channel < table.size(); ++channel) {
    const double mean = OfChannel(spec.normalize.mean, channel);
    const double deviation = OfChannel(spec.normalize.deviation, channel);
    for (std::size_t value = 0; value < table[channel].size(); ++value) {
      table[channel][value] = static_cast<float>(
          (static_cast<double>(value) / Brightest(spec.kind) - mean) / deviation);
    }
  }
  return table;
}

Placement DrawPlacement(const Augment& augment, std::uint64_t shard_seed, std::uint64_t sample) {
  RandomStream stream(HashWords({shard_seed, kPlacement, sample}));
  Placement placement;
  if (augment.crop_padding > 0) {
    const auto offsets = static_cast<std::uint64_t>(2 * augment.crop_padding + 1);
    placement.down = static_cast<std::int64_t>(stream.Below(offsets)) - augment.crop_padding;
    placement.right = static_cast<std::int64_t>(stream.Below(offsets)) - augment.crop_padding;
  }
  placement.mirrored = augment.horizontal_flip && stream.Below(2) == 1;
  return placement;
}

void WriteImage(std::span<const std::uint8_t> pixels, const Shape& shape, const PixelTable& table,
                const Placement& placement, std::span<float> values) {
  CHECK(values.size() == pixels.size(), "one value a pixel");
  const std::int64_t height = shape[1];
  const std::int64_t width = shape[2];
  auto out = values.begin();
  for (std::int64_t channel = 0; channel < shape[0]; ++channel) {
    const std::array<float, 256>& value_of = table[static_cast<std::size_t>(channel)];
    for (std::int64_t row = 0; row < height; ++row, out += width) {
      std::fill_n(out, width, value_of[0]);
      const std::int64_t from_row = row - placement.down;
      if (from_row < 0 || from_row >= height) continue;
      const std::uint8_t* const from =
          &pixels[static_cast<std::size_t>((channel * height + from_row) * width)];
      const std::int64_t begin = std::max<std::int64_t>(placement.right, 0);
      const std::int64_t end = std::min(width + placement.right, width);
      for (std::int64_t column = begin; column < end; ++column) {
        out[column] = value_of[from[column - placement.right]];
      }
      if (placement.mirrored) std::reverse(out, out + width);
    }
  }
}

}  // namespace pliant::learner
