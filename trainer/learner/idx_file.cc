#include "trainer/learner/idx_file.h"

#include <cstddef>
#include <vector>

#include "base/format.h"

namespace pliant::learner {
namespace {

constexpr std::uint32_t kMagicOfDimension = 0x00000800;  // of unsigned bytes; add the dimensions
constexpr std::uint32_t kMaxSide = 65536;
constexpr std::uint8_t kGzipMagic[] = {0x1f, 0x8b};

std::uint32_t BigEndian(std::span<const std::uint8_t> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

struct Idx {
  std::vector<std::uint32_t> sizes;
  std::span<const std::uint8_t> values;
};

Result<Idx> ParseHeader(const NamedBytes& file, std::size_t dimensions, std::string_view what) {
  const std::size_t header = 4 * (1 + dimensions);
  const auto& [bytes, origin] = file;
  if (bytes.size() >= 2 && bytes[0] == kGzipMagic[0] && bytes[1] == kGzipMagic[1]) {
    return Invalid(Format("{}: offset 0: the file is compressed: unpack it with gunzip", origin));
  }
  if (bytes.size() < header) {
    return Invalid(Format("{}: offset {}: the file ends within its header: expected {} bytes",
                          origin, bytes.size(), header));
  }
  const std::uint32_t want = kMagicOfDimension + static_cast<std::uint32_t>(dimensions);
  if (const std::uint32_t magic = BigEndian(bytes); magic != want) {
    return Invalid(Format("{}: offset 0: the magic number is {:#010x}: expected {:#010x}, {}",
                          origin, magic, want, what));
  }
  Idx idx;
  std::uint64_t values = 1;
  for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
    const std::size_t offset = 4 * (1 + dimension);
    const std::uint32_t size = BigEndian(bytes.subspan(offset));
    if (size == 0 || (dimension > 0 && size > kMaxSide)) {
      return Invalid(Format("{}: offset {}: {} {}: expected {}", origin, offset, size,
                            dimension == 0   ? what
                            : dimension == 1 ? "rows"
                                             : "columns",
                            dimension == 0 ? "at least 1" : Format("1 to {}", kMaxSide)));
    }
    idx.sizes.push_back(size);
    values *= size;  // at most 2^32 * 2^16 * 2^16
    if (values > bytes.size()) break;
  }
  idx.values = bytes.subspan(header);
  if (values != idx.values.size()) {
    return Invalid(Format(
        "{}: offset 4: {} {} do not fit the {} bytes after the header of {} bytes: the file is "
        "truncated, or not an IDX file",
        origin, idx.sizes[0], what, idx.values.size(), header));
  }
  return idx;
}

}  // namespace

Result<Samples> ParseIdx(const NamedBytes& images, const NamedBytes& labels, std::int64_t classes) {
  ASSIGN_OR_RETURN(const Idx image_idx, ParseHeader(images, 3, "images"));
  ASSIGN_OR_RETURN(const Idx label_idx, ParseHeader(labels, 1, "labels"));
  if (image_idx.sizes[0] != label_idx.sizes[0]) {
    return Invalid(Format("{}: offset 4: {} labels, but {} has {} images", labels.origin,
                          label_idx.sizes[0], images.origin, image_idx.sizes[0]));
  }
  for (std::size_t i = 0; i < label_idx.values.size(); ++i) {
    if (label_idx.values[i] >= classes) {
      return Invalid(Format("{}: offset {}: image {} has the label {}: expected 0..{}",
                            labels.origin, 8 + i, i, label_idx.values[i], classes - 1));
    }
  }
  return Samples{.shape = {1, image_idx.sizes[1], image_idx.sizes[2]},
                 .pixels = {image_idx.values.begin(), image_idx.values.end()},
                 .labels = {label_idx.values.begin(), label_idx.values.end()}};
}

}  // namespace pliant::learner
