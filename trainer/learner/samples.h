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

// Reads the files of a data set, which are below `folder`. kInvalid: "file: what is wrong", with
// the line or the offset.
Result<Samples> ReadSamples(const DatasetSpec& spec, const DataFiles& files,
                            const std::filesystem::path& folder);

// The size of the images, if this kind of data has only one size.
std::optional<Shape> ShapeOf(DataKind kind);
// kInvalid: a model with this input cannot take these images, neither as they are nor as one row.
Status CheckInput(const Shape& input, const Shape& images);

}  // namespace pliant::learner
