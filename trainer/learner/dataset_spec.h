#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "trainer/learner/layers.h"

namespace pliant::learner {

enum class DataKind {
  kDigits,   // handwritten digits as CSV, one image a line: 64 pixels of 0..16, then the digit
  kCifar10,  // CIFAR-10's binary version: a label byte, then 3072 bytes of red, green and blue
  kIdx,      // MNIST's format: one file of images, one of labels
};

// The files of the training or the test set, as written in the model file.
struct DataFiles {
  std::vector<std::filesystem::path> images;  // in this order; IDX: one
  std::filesystem::path labels;               // IDX only: other files hold images and labels
  bool operator==(const DataFiles&) const = default;
};

// A pixel becomes (pixel / brightest - mean) / deviation. One number a channel, or one for all.
struct Normalize {
  std::vector<double> mean = {0.5};
  std::vector<double> deviation = {0.5};
  bool operator==(const Normalize&) const = default;
};

// Random changes of the training images, drawn again for each image in every epoch.
struct Augment {
  std::int64_t crop_padding = 0;  // black pixels added on each side, before a crop to the old size
  bool horizontal_flip = false;   // of each image with probability 1/2
  bool operator==(const Augment&) const = default;
};

struct DatasetSpec {
  DataKind kind = DataKind::kDigits;
  std::int64_t classes = 10;
  DataFiles train;
  DataFiles test;
  Normalize normalize;
  Augment augment;
  bool operator==(const DatasetSpec&) const = default;
};

}  // namespace pliant::learner
