#include "trainer/learner/cifar10_file.h"

#include <cstddef>

#include "base/format.h"

namespace pliant::learner {
namespace {

constexpr std::size_t kCifar10Pixels = std::size_t{kCifar10Channels} * kCifar10Side * kCifar10Side;
constexpr std::size_t kRecord = 1 + kCifar10Pixels;

}  // namespace

Status ParseCifar10(std::span<const std::uint8_t> bytes, const std::string& origin,
                    Samples& samples) {
  if (bytes.empty()) return Invalid(Format("{}: holds no image", origin));
  if (bytes.size() % kRecord != 0) {
    return Invalid(Format(
        "{}: offset {}: the file ends within image {}: expected records of {} bytes (a label and "
        "{}x{}x{} pixels), but it has {} bytes",
        origin, bytes.size(), bytes.size() / kRecord, kRecord, kCifar10Channels, kCifar10Side,
        kCifar10Side, bytes.size()));
  }
  const std::size_t count = bytes.size() / kRecord;
  samples.shape = {kCifar10Channels, kCifar10Side, kCifar10Side};
  samples.pixels.reserve(samples.pixels.size() + count * kCifar10Pixels);
  samples.labels.reserve(samples.labels.size() + count);
  for (std::size_t image = 0; image < count; ++image) {
    const auto record = bytes.subspan(image * kRecord, kRecord);
    if (record[0] >= kCifar10Classes) {
      return Invalid(Format("{}: offset {}: image {} has the label {}: expected 0..{}", origin,
                            image * kRecord, image, record[0], kCifar10Classes - 1));
    }
    samples.labels.push_back(record[0]);
    samples.pixels.insert(samples.pixels.end(), record.begin() + 1, record.end());
  }
  return {};
}

}  // namespace pliant::learner
