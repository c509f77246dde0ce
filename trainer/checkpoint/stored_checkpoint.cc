#include "trainer/checkpoint/stored_checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "base/format.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/safetensors.h"

namespace pliant {
namespace {

constexpr std::uint64_t kMaxTextBytes = 16 << 20;
constexpr std::size_t kReadBytes = std::size_t{8} << 20;

bool IsModelSlice(std::string_view file) { return file.starts_with("model-"); }

bool HasTensors(std::string_view file) { return file.ends_with(".safetensors"); }

// Whether it is a model file. The final model has no others, whatever their names are.
bool IsOfModel(std::string_view directory, std::string_view file) {
  return IsModelSlice(file) || directory == kFinalDirectory;
}

// Removes `prefix` and the number after it from the front of `text`.
bool TakeNumber(std::string_view& text, std::string_view prefix, std::uint64_t& number) {
  if (!text.starts_with(prefix)) return false;
  const char* const end = text.data() + text.size();
  const auto taken = std::from_chars(text.data() + prefix.size(), end, number);
  if (taken.ec != std::errc()) return false;
  text = {taken.ptr, end};
  return true;
}

std::optional<StoredCheckpoint> ParseDirectory(std::string_view name) {
  StoredCheckpoint stored{.name = std::string(name)};
  if (!TakeNumber(name, kStepPrefix, stored.step)) return std::nullopt;
  if (!TakeNumber(name, "-t", stored.tick)) return std::nullopt;
  if (!TakeNumber(name, "-m", stored.membership.term)) return std::nullopt;
  if (!TakeNumber(name, ".", stored.membership.counter) || !name.empty()) return std::nullopt;
  return stored;
}

// Reads `out.size()` bytes at `offset` and adds them to the checksum.
Status ReadChecked(CheckpointStore& store, std::string_view path, std::uint64_t offset,
                   std::span<std::byte> out, std::uint32_t& crc) {
  for (std::size_t done = 0; done < out.size(); done += kReadBytes) {
    const auto part = out.subspan(done, std::min(kReadBytes, out.size() - done));
    RETURN_IF_ERROR(store.Read(path, offset + done, part));
    crc = Crc32c(part, crc);
  }
  return {};
}

// A file of a checkpoint whose header was read.
struct OpenFile {
  const ManifestFile* listed = nullptr;
  std::string path;
  std::uint64_t data_begin = 0;
  safetensors::Header header;
  std::uint32_t crc = 0;  // of the bytes read so far
};

Result<OpenFile> Open(CheckpointStore& store, std::string_view directory,
                      const ManifestFile& listed) {
  OpenFile file{.listed = &listed, .path = PathIn(directory, listed.name)};
  std::array<std::byte, safetensors::kLengthBytes> length_bytes{};
  if (listed.bytes < length_bytes.size())
    return Fail(ErrorCode::kCorrupt, Format("{}: {} bytes are too few", file.path, listed.bytes));
  RETURN_IF_ERROR(ReadChecked(store, file.path, 0, length_bytes, file.crc));
  ASSIGN_OR_RETURN(const std::uint64_t length,
                   safetensors::DecodeHeaderLength(length_bytes, listed.bytes));
  std::string json(length, '\0');
  RETURN_IF_ERROR(ReadChecked(store, file.path, length_bytes.size(),
                              std::as_writable_bytes(std::span(json)), file.crc));
  file.data_begin = length_bytes.size() + length;
  ASSIGN_OR_RETURN(file.header, safetensors::DecodeHeader(json, listed.bytes - file.data_begin));
  return file;
}

}  // namespace

std::string PathIn(std::string_view directory, std::string_view name) {
  return Format("{}/{}", directory, name);
}

std::uint64_t StoredCheckpoint::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += file.second;
  return sum;
}

int StoredCheckpoint::slices() const {
  return static_cast<int>(std::ranges::count_if(files, [](const auto& file) {
    return IsModelSlice(file.first) && file.first.ends_with(".safetensors");
  }));
}

Result<std::vector<StoredCheckpoint>> ListSteps(CheckpointStore& store) {
  ASSIGN_OR_RETURN(const std::vector<StoredObject> objects, store.List(kStepPrefix));
  std::map<std::string, StoredCheckpoint> found;
  for (const StoredObject& object : objects) {
    const std::size_t slash = object.name.find('/');
    if (slash == std::string::npos) continue;
    const std::string name = object.name.substr(0, slash);
    auto known = found.find(name);
    if (known == found.end()) {
      auto stored = ParseDirectory(name);
      if (!stored) continue;
      known = found.emplace(name, *std::move(stored)).first;
    }
    known->second.files.emplace(object.name.substr(slash + 1), object.bytes);
  }
  std::vector<StoredCheckpoint> steps;
  for (auto& [name, stored] : found) steps.push_back(std::move(stored));
  std::ranges::sort(steps, [](const StoredCheckpoint& a, const StoredCheckpoint& b) {
    return std::tie(b.step, b.tick, b.membership, a.name) <
           std::tie(a.step, a.tick, a.membership, b.name);
  });
  return steps;
}

Result<StoredCheckpoint> FindDirectory(CheckpointStore& store, std::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<StoredObject> objects, store.List(PathIn(name, "")));
  StoredCheckpoint stored =
      ParseDirectory(name).value_or(StoredCheckpoint{.name = std::string(name)});
  for (const StoredObject& object : objects)
    stored.files.emplace(object.name.substr(name.size() + 1), object.bytes);
  return stored;
}

Result<std::string> ReadText(CheckpointStore& store, const StoredCheckpoint& stored,
                             std::string_view name) {
  const auto found = stored.files.find(name);
  if (found == stored.files.end())
    return Fail(ErrorCode::kNotFound, Format("{} has no {}", stored.name, name));
  if (found->second > kMaxTextBytes)
    return Fail(ErrorCode::kCorrupt, Format("{}: {} bytes are too many", name, found->second));
  std::string text(found->second, '\0');
  RETURN_IF_ERROR(
      store.Read(PathIn(stored.name, name), 0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<Manifest> ReadManifest(CheckpointStore& store, const StoredCheckpoint& stored) {
  if (!stored.has_manifest()) return Fail(ErrorCode::kNotFound, stored.name + " has no manifest");
  ASSIGN_OR_RETURN(const std::string text, ReadText(store, stored, kManifestName));
  return DecodeManifest(text);
}

bool AllPresent(const StoredCheckpoint& stored, const Manifest& manifest) {
  return std::ranges::all_of(manifest.files, [&](const ManifestFile& file) {
    const auto present = stored.files.find(file.name);
    return present != stored.files.end() && present->second == file.bytes;
  });
}

namespace {

Status VerifyText(CheckpointStore& store, const StoredCheckpoint& stored,
                  const ManifestFile& listed) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(store, stored, listed.name));
  const std::uint32_t crc = Crc32c(std::as_bytes(std::span(text)), 0);
  if (crc == listed.crc32c) return {};
  return Fail(ErrorCode::kCorrupt, Format("{}: checksum {:08x}, the manifest says {:08x}",
                                          listed.name, crc, listed.crc32c));
}

// The tensors of these files, each file verified by its checksum.
Result<StateCopy> LoadFiles(CheckpointStore& store, const StoredCheckpoint& stored,
                            const std::vector<ManifestFile>& listed_files) {
  std::vector<OpenFile> files;
  StateDict layout;
  std::set<std::string> names;
  for (const ManifestFile& listed : listed_files) {
    const auto present = stored.files.find(listed.name);
    if (present == stored.files.end() || present->second != listed.bytes)
      return Fail(ErrorCode::kCorrupt,
                  Format("{} is missing or does not have {} bytes", listed.name, listed.bytes));
    if (!HasTensors(listed.name)) {
      RETURN_IF_ERROR(VerifyText(store, stored, listed));
      continue;
    }
    ASSIGN_OR_RETURN(OpenFile file, Open(store, stored.name, listed));
    const std::string_view prefix = IsOfModel(stored.name, listed.name) ? kModelPrefix : "";
    for (const safetensors::TensorInfo& tensor : file.header.tensors) {
      layout.push_back({.name = std::string(prefix) + tensor.name,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape,
                        .bytes = {static_cast<std::byte*>(nullptr), tensor.end - tensor.begin}});
      if (!names.insert(layout.back().name).second)
        return Fail(ErrorCode::kCorrupt, Format("tensor {} is stored twice", layout.back().name));
    }
    files.push_back(std::move(file));
  }

  StateCopy state = StateCopy::Like(layout);
  auto tensor = state.view().begin();
  for (OpenFile& file : files) {
    for (const safetensors::TensorInfo& info : file.header.tensors)
      RETURN_IF_ERROR(
          ReadChecked(store, file.path, file.data_begin + info.begin, (tensor++)->bytes, file.crc));
    if (file.crc != file.listed->crc32c)
      return Fail(ErrorCode::kCorrupt, Format("{}: checksum {:08x}, the manifest says {:08x}",
                                              file.listed->name, file.crc, file.listed->crc32c));
  }
  return state;
}

}  // namespace

Result<StateCopy> LoadVerified(CheckpointStore& store, const StoredCheckpoint& stored,
                               const Manifest& manifest) {
  ASSIGN_OR_RETURN(StateCopy state, LoadFiles(store, stored, manifest.files));
  if (manifest.parameters_sha256.empty()) return state;  // in slices: no learner had all of it
  const std::string sha256 = ParametersSha256(state.view());
  if (sha256 != manifest.parameters_sha256)
    return Fail(ErrorCode::kCorrupt, Format("parameters have hash {}, the manifest says {}", sha256,
                                            manifest.parameters_sha256));
  return state;
}

}  // namespace pliant
