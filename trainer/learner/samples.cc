#include "trainer/learner/samples.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "trainer/learner/cifar10_file.h"
#include "trainer/learner/digits_file.h"
#include "trainer/learner/idx_file.h"

namespace pliant::learner {
namespace {

// A whole data set is held in memory: a larger file is a mistake.
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{64} << 30;

Result<std::vector<std::uint8_t>> ReadBytes(const std::filesystem::path& path) {
  const auto fail = [&](std::string_view why) {
    return Invalid(Format("read {}: {}", path.string(), why));
  };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fail(std::strerror(ENOENT));
  if (!std::filesystem::is_regular_file(status)) return fail("expected a file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return fail(error.message());
  if (size > kMaxFileBytes) {
    return fail(Format("it has {} bytes: expected at most {}", size, kMaxFileBytes));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(std::strerror(errno));
  std::vector<std::uint8_t> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(file.gcount()) != size) return fail("it ends too early");
  return bytes;
}

Result<Samples> ReadCifar10(const DataFiles& files, const std::filesystem::path& folder) {
  Samples samples;
  for (const std::filesystem::path& name : files.images) {
    ASSIGN_OR_RETURN(const auto bytes, ReadBytes(folder / name));
    RETURN_IF_ERROR(ParseCifar10(bytes, (folder / name).string(), samples));
  }
  return samples;
}

Result<Samples> ReadIdx(const DataFiles& files, const std::filesystem::path& folder,
                        std::int64_t classes) {
  const std::filesystem::path images = folder / files.images.front();
  const std::filesystem::path labels = folder / files.labels;
  ASSIGN_OR_RETURN(const auto image_bytes, ReadBytes(images));
  ASSIGN_OR_RETURN(const auto label_bytes, ReadBytes(labels));
  return ParseIdx({image_bytes, images.string()}, {label_bytes, labels.string()}, classes);
}

Result<Samples> ReadDigits(const DataFiles& files, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / files.images.front();
  ASSIGN_OR_RETURN(const auto bytes, ReadBytes(path));
  return ParseDigits({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace

Result<Samples> ReadSamples(const DatasetSpec& spec, const DataFiles& files,
                            const std::filesystem::path& folder) {
  switch (spec.kind) {
    case DataKind::kDigits:
      return ReadDigits(files, folder);
    case DataKind::kCifar10:
      return ReadCifar10(files, folder);
    case DataKind::kIdx:
      return ReadIdx(files, folder, spec.classes);
  }
  return Invalid("data: an unknown kind");
}

std::optional<Shape> ShapeOf(DataKind kind) {
  switch (kind) {
    case DataKind::kDigits:
      return Shape{1, kDigitSide, kDigitSide};
    case DataKind::kCifar10:
      return Shape{kCifar10Channels, kCifar10Side, kCifar10Side};
    case DataKind::kIdx:
      return std::nullopt;
  }
  return std::nullopt;
}

Status CheckInput(const Shape& input, const Shape& images) {
  if (input == images || input == Shape{Elements(images)}) return {};
  return Invalid(
      Format("input: the images are {}, but the model takes {}: expected [{}, {}, {}]"
             " or [{}]",
             ToString(images), ToString(input), images[0], images[1], images[2], Elements(images)));
}

}  // namespace pliant::learner
