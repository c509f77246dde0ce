#include "trainer/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <format>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "trainer/checkpoint/safetensors.h"

namespace pliant {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kModelFiles = "model-";
constexpr std::string_view kModelFile = "model-00001-of-00001.safetensors";
constexpr std::string_view kOptimizerFile = "optimizer-00001-of-00001.safetensors";
constexpr std::string_view kFinalDirectory = "final";
constexpr std::string_view kFinalFile = "model.safetensors";
constexpr std::uint64_t kManifestBytesMost = 16 << 20;
constexpr std::size_t kReadBytes = std::size_t{8} << 20;

std::string Path(std::string_view directory, std::string_view name) {
  return std::format("{}/{}", directory, name);
}

// "step-000000001234-m2.5"
struct StepDirectory {
  std::string name;
  std::uint64_t step = 0;
  MembershipId membership;
  std::map<std::string, std::uint64_t, std::less<>> files;  // name → bytes

  bool has_manifest() const { return files.contains(kManifestName); }
};

std::string NameOf(const TrainingPosition& position) {
  return std::format("{}{:012}-m{}", kStepPrefix, position.step, ToString(position.membership));
}

std::optional<StepDirectory> ParseDirectory(std::string_view name) {
  StepDirectory directory{.name = std::string(name)};
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto step = std::from_chars(name.data() + kStepPrefix.size(), end, directory.step);
  if (step.ec != std::errc() || end - step.ptr < 2 || step.ptr[0] != '-' || step.ptr[1] != 'm')
    return std::nullopt;
  const auto term = std::from_chars(step.ptr + 2, end, directory.membership.term);
  if (term.ec != std::errc() || term.ptr == end || *term.ptr != '.') return std::nullopt;
  const auto counter = std::from_chars(term.ptr + 1, end, directory.membership.counter);
  if (counter.ec != std::errc() || counter.ptr != end) return std::nullopt;
  return directory;
}

// The newest first.
Result<std::vector<StepDirectory>> ListSteps(CheckpointStore& store) {
  ASSIGN_OR_RETURN(const std::vector<StoredObject> objects, store.List(kStepPrefix));
  std::map<std::string, StepDirectory> found;
  for (const StoredObject& object : objects) {
    const std::size_t slash = object.name.find('/');
    if (slash == std::string::npos) continue;
    const std::string name = object.name.substr(0, slash);
    auto known = found.find(name);
    if (known == found.end()) {
      auto directory = ParseDirectory(name);
      if (!directory) continue;
      known = found.emplace(name, *std::move(directory)).first;
    }
    known->second.files.emplace(object.name.substr(slash + 1), object.bytes);
  }
  std::vector<StepDirectory> steps;
  for (auto& [name, directory] : found) steps.push_back(std::move(directory));
  std::ranges::sort(steps, [](const StepDirectory& a, const StepDirectory& b) {
    return std::tie(b.step, b.membership, a.name) < std::tie(a.step, a.membership, b.name);
  });
  return steps;
}

// A safetensors file before it is written. Borrows the tensors.
struct TensorFile {
  std::string name;
  StateDict tensors;
  std::string header;

  std::vector<std::span<const std::byte>> Parts() const {
    std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(header))};
    for (const TensorView& tensor : tensors) parts.emplace_back(tensor.bytes);
    return parts;
  }
};

TensorFile MakeFile(std::string_view name, StateDict tensors) {
  // Wider types first, as the reference writer does: then all begin at a multiple of their size, as
  // readers that map the file need it.
  std::ranges::sort(tensors, [](const TensorView& a, const TensorView& b) {
    return std::pair(SizeOf(b.dtype), std::string_view(a.name)) <
           std::pair(SizeOf(a.dtype), std::string_view(b.name));
  });
  std::string header = safetensors::EncodeHeader(tensors, {{"format", "pt"}});
  return {.name = std::string(name), .tensors = std::move(tensors), .header = std::move(header)};
}

bool IsOfModel(const TensorView& tensor) { return tensor.name.starts_with(kModelPrefix); }

// The model's tensors carry in files the names that its framework gave them.
StateDict ModelOf(const StateDict& state) {
  StateDict model;
  for (const TensorView& tensor : state) {
    if (!IsOfModel(tensor)) continue;
    model.push_back(tensor);
    model.back().name.erase(0, kModelPrefix.size());
  }
  return model;
}

StateDict RestOf(const StateDict& state) {
  StateDict rest;
  for (const TensorView& tensor : state)
    if (!IsOfModel(tensor)) rest.push_back(tensor);
  return rest;
}

ManifestFile Describe(const TensorFile& file) {
  ManifestFile described{.name = file.name};
  for (const auto& part : file.Parts()) {
    described.bytes += part.size();
    described.crc32c = Crc32c(part, described.crc32c);
  }
  return described;
}

Result<Manifest> ReadManifest(CheckpointStore& store, std::string_view directory,
                              std::uint64_t bytes) {
  if (bytes > kManifestBytesMost)
    return Fail(ErrorCode::kCorrupt, std::format("manifest: {} bytes are too many", bytes));
  std::string text(bytes, '\0');
  RETURN_IF_ERROR(
      store.Read(Path(directory, kManifestName), 0, std::as_writable_bytes(std::span(text))));
  return DecodeManifest(text);
}

bool AllPresent(std::string_view directory, const Manifest& manifest,
                const std::vector<StoredObject>& present) {
  return std::ranges::all_of(manifest.files, [&](const ManifestFile& file) {
    return std::ranges::contains(
        present, StoredObject{.name = Path(directory, file.name), .bytes = file.bytes});
  });
}

// Writes files and then the manifest into `directory`, which has no manifest or this one. What it
// could not end it leaves to the caller.
Result<Manifest> WriteInto(CheckpointStore& store, std::string_view directory,
                           const std::vector<TensorFile>& files, const CheckpointLabel& label,
                           const StateDict& state) {
  Manifest manifest{.position = label.position,
                    .job = label.job,
                    .framework = label.framework,
                    .parameters_sha256 = ParametersSha256(state)};
  for (const TensorFile& file : files) manifest.files.push_back(Describe(file));

  // The same state may be saved again: at a later tick of an evaluation, or after a crash whose
  // checkpoint was complete already. Files that a valid manifest names are never written over.
  const std::string manifest_path = Path(directory, kManifestName);
  ASSIGN_OR_RETURN(const std::vector<StoredObject> present, store.List(Path(directory, "")));
  const auto old = std::ranges::find(present, manifest_path, &StoredObject::name);
  bool write_files = true;
  if (old != present.end()) {
    const Result<Manifest> known = ReadManifest(store, directory, old->bytes);
    write_files =
        !known || known->files != manifest.files || !AllPresent(directory, *known, present);
    if (write_files) RETURN_IF_ERROR(store.Remove(manifest_path));
    if (!write_files && *known == manifest) return manifest;
  }
  if (write_files)
    for (const TensorFile& file : files)
      RETURN_IF_ERROR(store.Put(Path(directory, file.name), file.Parts()));
  const std::string text = EncodeManifest(manifest);
  const auto part = std::as_bytes(std::span(text));
  RETURN_IF_ERROR(store.Put(manifest_path, {&part, 1}));
  return manifest;
}

// Files without a manifest are worth nothing, and take the room that the next attempt needs. As far
// as they can be removed: why they could not be written is what is told.
void RemoveUnpublished(CheckpointStore& store, std::string_view directory) {
  const auto present = store.List(Path(directory, ""));
  if (!present) return;
  if (std::ranges::contains(*present, Path(directory, kManifestName), &StoredObject::name)) return;
  for (const StoredObject& object : *present)
    if (!store.Remove(object.name)) return;
}

// All of a checkpoint, or, if the store lets it, nothing.
Result<Manifest> Publish(CheckpointStore& store, std::string_view directory,
                         const std::vector<TensorFile>& files, const CheckpointLabel& label,
                         const StateDict& state) {
  Result<Manifest> written = WriteInto(store, directory, files, label, state);
  if (!written) RemoveUnpublished(store, directory);
  return written;
}

// Reads `out.size()` bytes at `offset` and goes on with the checksum.
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
  std::uint32_t crc = 0;  // of what was read
};

Result<OpenFile> Open(CheckpointStore& store, std::string_view directory,
                      const ManifestFile& listed) {
  OpenFile file{.listed = &listed, .path = Path(directory, listed.name)};
  std::array<std::byte, safetensors::kLengthBytes> length_bytes{};
  if (listed.bytes < length_bytes.size())
    return Fail(ErrorCode::kCorrupt,
                std::format("{}: {} bytes are too few", file.path, listed.bytes));
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

// Everything of a checkpoint, verified.
Result<Restored> Load(CheckpointStore& store, const StepDirectory& directory, Manifest manifest) {
  std::vector<OpenFile> files;
  StateDict layout;
  std::set<std::string> names;
  for (const ManifestFile& listed : manifest.files) {
    const auto present = directory.files.find(listed.name);
    if (present == directory.files.end() || present->second != listed.bytes)
      return Fail(ErrorCode::kCorrupt,
                  std::format("{} does not have {} bytes", listed.name, listed.bytes));
    ASSIGN_OR_RETURN(OpenFile file, Open(store, directory.name, listed));
    const std::string_view prefix = listed.name.starts_with(kModelFiles) ? kModelPrefix : "";
    for (const safetensors::TensorInfo& tensor : file.header.tensors) {
      layout.push_back({.name = std::string(prefix) + tensor.name,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape,
                        .bytes = {static_cast<std::byte*>(nullptr), tensor.end - tensor.begin}});
      if (!names.insert(layout.back().name).second)
        return Fail(ErrorCode::kCorrupt,
                    std::format("tensor {} is there twice", layout.back().name));
    }
    files.push_back(std::move(file));
  }

  Restored restored{.state = StateCopy::Like(layout)};
  auto tensor = restored.state.view().begin();
  for (OpenFile& file : files) {
    for (const safetensors::TensorInfo& info : file.header.tensors)
      RETURN_IF_ERROR(
          ReadChecked(store, file.path, file.data_begin + info.begin, (tensor++)->bytes, file.crc));
    if (file.crc != file.listed->crc32c)
      return Fail(ErrorCode::kCorrupt,
                  std::format("{}: checksum {:08x}, the manifest says {:08x}", file.listed->name,
                              file.crc, file.listed->crc32c));
  }
  const std::string sha256 = ParametersSha256(restored.state.view());
  if (sha256 != manifest.parameters_sha256)
    return Fail(ErrorCode::kCorrupt, std::format("parameters have hash {}, the manifest says {}",
                                                 sha256, manifest.parameters_sha256));
  restored.manifest = std::move(manifest);
  return restored;
}

Status RemoveDirectory(CheckpointStore& store, const StepDirectory& directory) {
  // The manifest first: without it the rest is no checkpoint.
  if (directory.has_manifest()) RETURN_IF_ERROR(store.Remove(Path(directory.name, kManifestName)));
  for (const auto& [file, bytes] : directory.files)
    if (file != kManifestName) RETURN_IF_ERROR(store.Remove(Path(directory.name, file)));
  return {};
}

}  // namespace

Result<Manifest> SaveCheckpoint(CheckpointStore& store, const CheckpointLabel& label,
                                const StateDict& state) {
  return Publish(store, NameOf(label.position),
                 {MakeFile(kModelFile, ModelOf(state)), MakeFile(kOptimizerFile, RestOf(state))},
                 label, state);
}

void RemoveRemains(CheckpointStore& store, MembershipId membership) {
  const auto steps = ListSteps(store);
  if (!steps) return;
  for (const StepDirectory& directory : *steps) {
    if (directory.has_manifest() || directory.membership > membership) continue;
    if (!RemoveDirectory(store, directory)) return;
  }
}

Result<Restored> RestoreNewest(CheckpointStore& store, const JobIdentity& job) {
  ASSIGN_OR_RETURN(const std::vector<StepDirectory> steps, ListSteps(store));
  std::vector<std::string> passed_over;
  for (const StepDirectory& directory : steps) {
    if (!directory.has_manifest()) continue;  // an attempt that did not end: never a checkpoint
    Result<Manifest> manifest =
        ReadManifest(store, directory.name, directory.files.at(std::string(kManifestName)));
    if (manifest && manifest->job != job)
      return Invalid(std::format(
          "checkpoint {} was written with seed {}, globalBatchSize {}, logicalShards {}; this job "
          "has {}, {}, {}",
          directory.name, manifest->job.seed, manifest->job.global_batch_size,
          manifest->job.logical_shards, job.seed, job.global_batch_size, job.logical_shards));
    Result<Restored> restored = manifest ? Load(store, directory, *std::move(manifest))
                                         : std::unexpected(std::move(manifest).error());
    if (restored) {
      restored->passed_over = std::move(passed_over);
      return restored;
    }
    // What cannot be read now is no reason to lose steps: the caller tries again.
    if (restored.error().code != ErrorCode::kCorrupt &&
        restored.error().code != ErrorCode::kNotFound)
      return restored;
    passed_over.push_back(InContext(directory.name, std::move(restored).error()).message);
  }
  if (passed_over.empty()) return Fail(ErrorCode::kNotFound, "there is no checkpoint");
  return Fail(ErrorCode::kCorrupt, std::format("none of {} checkpoints verifies; the newest: {}",
                                               passed_over.size(), passed_over.front()));
}

Result<std::uint64_t> NewestStep(CheckpointStore& store) {
  ASSIGN_OR_RETURN(const std::vector<StepDirectory> steps, ListSteps(store));
  const auto newest = std::ranges::find_if(steps, &StepDirectory::has_manifest);
  if (newest == steps.end()) return Fail(ErrorCode::kNotFound, "there is no checkpoint");
  return newest->step;
}

Status PruneTo(CheckpointStore& store, const TrainingPosition& written, int keep) {
  ASSIGN_OR_RETURN(const std::vector<StepDirectory> steps, ListSteps(store));
  for (const StepDirectory& directory : steps)
    if (directory.membership > written.membership) return {};  // theirs to prune
  int kept = 0;
  for (const StepDirectory& directory : steps) {
    const bool ahead = directory.step > written.step;
    const bool keeps = ahead ? directory.membership == written.membership
                             : directory.has_manifest() && kept++ < std::max(keep, 1);
    if (!keeps) RETURN_IF_ERROR(RemoveDirectory(store, directory));
  }
  return {};
}

Result<Manifest> ExportFinal(CheckpointStore& store, const CheckpointLabel& label,
                             const StateDict& state) {
  return Publish(store, kFinalDirectory, {MakeFile(kFinalFile, ModelOf(state))}, label, state);
}

Result<Manifest> ReadFinal(CheckpointStore& store) {
  ASSIGN_OR_RETURN(const std::vector<StoredObject> present, store.List(Path(kFinalDirectory, "")));
  const auto manifest_object =
      std::ranges::find(present, Path(kFinalDirectory, kManifestName), &StoredObject::name);
  if (manifest_object == present.end())
    return Fail(ErrorCode::kNotFound, "the final model is not published");
  ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(store, kFinalDirectory, manifest_object->bytes));
  if (!AllPresent(kFinalDirectory, manifest, present))
    return Fail(ErrorCode::kCorrupt, "final: a file is missing or cut");
  return manifest;
}

}  // namespace pliant
