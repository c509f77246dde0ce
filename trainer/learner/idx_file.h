#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "trainer/learner/samples.h"

namespace pliant::learner {

// A file and how errors call it.
struct NamedBytes {
  std::span<const std::uint8_t> bytes;
  std::string origin;
};

// IDX, the format of MNIST: a file of images (magic number 0x00000803: bytes in three dimensions)
// and one of labels (0x00000801), with big-endian counts. Nothing is allocated by a count that the
// file's size does not bear out.
Result<Samples> ParseIdx(const NamedBytes& images, const NamedBytes& labels, std::int64_t classes);

}  // namespace pliant::learner
