#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "trainer/learner/samples.h"

namespace pliant::learner {

// The contents of a file, and its name in errors.
struct NamedBytes {
  std::span<const std::uint8_t> bytes;
  std::string origin;
};

// IDX, the format of MNIST: a file of images (magic number 0x00000803: bytes in three dimensions)
// and one of labels (0x00000801), with big-endian counts. A count is checked against the file's
// size before anything is allocated.
Result<Samples> ParseIdx(const NamedBytes& images, const NamedBytes& labels, std::int64_t classes);

}  // namespace pliant::learner
