#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/learner/dataset_spec.h"

namespace pliant::learner {

// Labelled images in the order of their files, which the sampler's indices refer to.
struct Samples {
  Shape shape;                       // of each image: {channels, height, width}
  std::vector<std::uint8_t> pixels;  // channel by channel, row by row
  std::vector<std::uint8_t> labels;  // below the number of classes

  std::uint64_t count() const { return labels.size(); }
  bool operator==(const Samples&) const = default;
};

// Reads a set's files, which lie below `folder`. kInvalid: "file: what is wrong", with the line or
// the offset.
Result<Samples> ReadSamples(const DatasetSpec& spec, const DataFiles& files,
                            const std::filesystem::path& folder);

// The size of the images, where the kind of data has only one.
std::optional<Shape> ShapeOf(DataKind kind);
// kInvalid if a model of that input cannot take such images, as they are or as one row.
Status CheckInput(const Shape& input, const Shape& images);

}  // namespace pliant::learner
