#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// A file before it is written: a safetensors file, or a text without tensors. Borrows the tensors,
// which are in host memory.
struct TensorFile {
  std::string name;
  StateDict tensors;
  std::string header;  // or the text

  std::vector<std::span<const std::byte>> Parts() const;
};

TensorFile MakeTensorFile(std::string_view name, StateDict tensors);

// Its size and checksum.
ManifestFile Describe(const TensorFile& file);

}  // namespace pliant
