#include "trainer/checkpoint/tensor_file.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "trainer/checkpoint/safetensors.h"

namespace pliant {

std::vector<std::span<const std::byte>> TensorFile::Parts() const {
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(header))};
  for (const TensorView& tensor : tensors) parts.emplace_back(tensor.bytes);
  return parts;
}

TensorFile MakeTensorFile(std::string_view name, StateDict tensors) {
  // Wider types first, as the reference writer does: then every tensor begins at a multiple of its
  // element size, which readers that map the file need.
  std::ranges::sort(tensors, [](const TensorView& a, const TensorView& b) {
    return std::pair(SizeOf(b.dtype), std::string_view(a.name)) <
           std::pair(SizeOf(a.dtype), std::string_view(b.name));
  });
  std::string header = safetensors::EncodeHeader(tensors, {{"format", "pt"}});
  return {.name = std::string(name), .tensors = std::move(tensors), .header = std::move(header)};
}

ManifestFile Describe(const TensorFile& file) {
  ManifestFile described{.name = file.name};
  for (const auto& part : file.Parts()) {
    described.bytes += part.size();
    described.crc32c = Crc32c(part, described.crc32c);
  }
  return described;
}

}  // namespace pliant
