#include "trainer/checkpoint/checkpoint.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/format.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/checkpoint/tensor_file.h"

namespace pliant {
namespace {

constexpr std::size_t kShownOfHash = 12;

std::string SliceText(StateSlice slice) {
  return Format("{:05}-of-{:05}", slice.index + 1, slice.count);
}

// The file that lists the files of a slice. It is written after them.
std::string ListName(StateSlice slice) { return Format("slice-{}.json", SliceText(slice)); }

// The name has the tick, too: an evaluation may change the state without a step. So each name
// stands for one state, and files of different states never collide.
std::string NameOf(const TrainingPosition& position) {
  return Format("{}{:012}-t{:012}-m{}", kStepPrefix, position.step, position.tick,
                ToString(position.membership));
}

bool IsOfModel(const TensorView& tensor) { return tensor.name.starts_with(kModelPrefix); }

// In files the model's tensors have the names that their framework gave them.
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

// The model's file is written even if it has no tensors: a reader may expect it.
std::vector<TensorFile> FilesOf(StateSlice slice, const StateDict& tensors) {
  return {MakeTensorFile(Format("model-{}.safetensors", SliceText(slice)), ModelOf(tensors)),
          MakeTensorFile(Format("optimizer-{}.safetensors", SliceText(slice)), RestOf(tensors))};
}

// Writes the files and then the manifest into `directory`, which has no manifest or one of this
// state. On failure the caller removes what was written.
Result<Manifest> WriteInto(CheckpointStore& store, std::string_view directory,
                           const std::vector<TensorFile>& files, const CheckpointLabel& label,
                           const StateDict& state) {
  Manifest manifest{.position = label.position,
                    .job = label.job,
                    .framework = label.framework,
                    .parameters_sha256 = ParametersSha256(state)};
  for (const TensorFile& file : files) manifest.files.push_back(Describe(file));

  // The same state may be saved again: during an evaluation, whose position is its beginning, or
  // after a crash if the checkpoint was already complete. Files that a valid manifest names are
  // never overwritten.
  ASSIGN_OR_RETURN(const StoredCheckpoint present, FindDirectory(store, directory));
  bool write_files = true;
  if (present.has_manifest()) {
    const Result<Manifest> known = ReadManifest(store, present);
    const bool whole = known && AllPresent(present, *known);
    // Slices that were completed after this learner had timed out waiting for them hold the same
    // state. To rewrite them would first remove the manifest, and if the write then failed there
    // would be no checkpoint.
    if (whole && known->parameters_sha256.empty()) return *known;
    write_files = !whole || known->files != manifest.files;
    if (write_files) RETURN_IF_ERROR(store.Remove(PathIn(directory, kManifestName)));
    if (!write_files && *known == manifest) return manifest;
  }
  if (write_files)
    for (const TensorFile& file : files)
      RETURN_IF_ERROR(store.Put(PathIn(directory, file.name), file.Parts()));
  const std::string text = EncodeManifest(manifest);
  const auto part = std::as_bytes(std::span(text));
  RETURN_IF_ERROR(store.Put(PathIn(directory, kManifestName), {&part, 1}));
  return manifest;
}

Status RemoveDirectory(CheckpointStore& store, const StoredCheckpoint& stored) {
  // The manifest first: without it the rest is no checkpoint.
  if (stored.has_manifest()) RETURN_IF_ERROR(store.Remove(PathIn(stored.name, kManifestName)));
  // Then the lists of its slices, which sort last: without them no learner publishes the rest.
  for (const auto& [file, bytes] : std::views::reverse(stored.files))
    if (file != kManifestName) RETURN_IF_ERROR(store.Remove(PathIn(stored.name, file)));
  // Another learner may have written the last slice, and so the manifest, meanwhile.
  return stored.has_manifest() ? Status() : store.Remove(PathIn(stored.name, kManifestName));
}

// The manifest, if there is a valid one and all its files are present.
Result<std::optional<Manifest>> FindPublished(CheckpointStore& store, std::string_view directory) {
  ASSIGN_OR_RETURN(const StoredCheckpoint present, FindDirectory(store, directory));
  if (!present.has_manifest()) return std::nullopt;
  Result<Manifest> manifest = ReadManifest(store, present);
  if (!manifest || !AllPresent(present, *manifest)) return std::nullopt;
  return *std::move(manifest);
}

Status WriteSlice(CheckpointStore& store, std::string_view directory, StateSlice slice,
                  const std::vector<TensorFile>& files) {
  std::vector<ManifestFile> described;
  for (const TensorFile& file : files) {
    described.push_back(Describe(file));
    RETURN_IF_ERROR(store.Put(PathIn(directory, file.name), file.Parts()));
  }
  const std::string text = EncodeFiles(described);
  const auto part = std::as_bytes(std::span(text));
  return store.Put(PathIn(directory, ListName(slice)), {&part, 1});
}

// Files without a manifest are worthless and take the space that the next attempt needs. Errors of
// the removal are ignored: the caller reports why the write failed.
void RemoveUnpublished(CheckpointStore& store, std::string_view directory) {
  const auto present = FindDirectory(store, directory);
  if (present && !present->has_manifest()) (void)RemoveDirectory(store, *present);
}

// Removes files that learners were writing when they were killed: each may be as large as the
// model. For a directory that is never pruned.
void RemoveTemporaries(CheckpointStore& store, std::string_view directory) {
  const auto present = FindDirectory(store, directory);
  if (!present) return;
  for (const auto& [file, bytes] : present->files) {
    if (file.ends_with(kTemporarySuffix)) (void)store.Remove(PathIn(directory, file));
  }
}

std::string TextOf(const BaseModel& base) {
  if (base.sha256.empty()) return "all parameters";
  return Format("the base {} {}", base.name.empty() ? "model" : base.name,
                base.sha256.substr(0, kShownOfHash));
}

Status CheckJob(const StoredCheckpoint& stored, const Manifest& manifest, const JobIdentity& job) {
  std::string theirs;
  std::string ours;
  const auto compare = [&](std::string_view name, std::uint64_t their_value,
                           std::uint64_t our_value) {
    if (their_value == our_value) return;
    const std::string_view comma = theirs.empty() ? "" : ", ";
    theirs += Format("{}{} {}", comma, name, their_value);
    ours += Format("{}{} {}", comma, name, our_value);
  };
  const JobIdentity& then = manifest.job;
  compare("seed", then.seed, job.seed);
  compare("globalBatchSize", then.global_batch_size, job.global_batch_size);
  compare("logicalShards", static_cast<std::uint64_t>(then.logical_shards),
          static_cast<std::uint64_t>(job.logical_shards));
  compare("trainSamples", then.train_samples, job.train_samples);
  compare("testSamples", then.test_samples, job.test_samples);
  if (then.base.sha256 != job.base.sha256) {
    const std::string_view comma = theirs.empty() ? "" : ", ";
    theirs += Format("{}{}", comma, TextOf(then.base));
    ours += Format("{}{}", comma, TextOf(job.base));
  }
  if (theirs.empty()) return {};
  return Invalid(
      Format("checkpoint {} was written with {}; this job has {}", stored.name, theirs, ours));
}

// Writes a whole checkpoint. On failure it leaves nothing, as far as the store can remove files.
Result<Manifest> Publish(CheckpointStore& store, std::string_view directory,
                         const std::vector<TensorFile>& files, const CheckpointLabel& label,
                         const StateDict& state) {
  Result<Manifest> written = WriteInto(store, directory, files, label, state);
  if (!written) RemoveUnpublished(store, directory);
  return written;
}

// The model of this state as others read it.
Result<Manifest> PublishModel(CheckpointStore& store, std::string_view directory,
                              const CheckpointLabel& label, const StateDict& state,
                              const FinalLayout& layout) {
  StateCopy home;
  RETURN_IF_ERROR(home.CopyFrom(layout.home));
  const StateDict model = FinalModelOf(state, layout, home.view());
  return Publish(store, directory, FinalFiles(model, layout), label, model);
}

}  // namespace

Result<Manifest> SaveCheckpoint(CheckpointStore& store, const CheckpointLabel& label,
                                const StateDict& state) {
  return Publish(store, NameOf(label.position), FilesOf({}, state), label, state);
}

Result<std::optional<Manifest>> SaveSlice(CheckpointStore& store, const CheckpointLabel& label,
                                          StateSlice slice, const StateDict& tensors) {
  if (slice.count == 1) return SaveCheckpoint(store, label, tensors);
  const std::string directory = NameOf(label.position);
  ASSIGN_OR_RETURN(const std::optional<Manifest> published, FindPublished(store, directory));
  if (published) return published;
  const std::vector<TensorFile> files = FilesOf(slice, tensors);
  const Status written = WriteSlice(store, directory, slice, files);
  if (written) return PublishSlices(store, label, slice.count);
  // The list may have been stored although its Put failed. Then others may have published the files
  // that it names, so they must stay.
  const auto present = FindDirectory(store, directory);
  if (present && !present->files.contains(ListName(slice))) {
    // Errors of the removal are ignored: the caller reports why the write failed.
    for (const TensorFile& file : files) (void)store.Remove(PathIn(directory, file.name));
  }
  return std::unexpected(written.error());
}

Result<std::optional<Manifest>> PublishSlices(CheckpointStore& store, const CheckpointLabel& label,
                                              int slices) {
  const std::string directory = NameOf(label.position);
  ASSIGN_OR_RETURN(const std::optional<Manifest> published, FindPublished(store, directory));
  if (published) return published;
  ASSIGN_OR_RETURN(const StoredCheckpoint present, FindDirectory(store, directory));
  Manifest manifest{.position = label.position, .job = label.job, .framework = label.framework};
  for (int index = 0; index < slices; ++index) {
    const std::string name = ListName({.index = index, .count = slices});
    if (!present.files.contains(name)) return std::nullopt;
    ASSIGN_OR_RETURN(const std::string text, ReadText(store, present, name));
    ASSIGN_OR_RETURN(const std::vector<ManifestFile> files, DecodeFiles(text));
    std::ranges::copy(files, std::back_inserter(manifest.files));
  }
  // A file is missing: another learner is removing the directory as remains.
  if (!AllPresent(present, manifest)) return std::nullopt;
  // Two learners that get here write the same bytes.
  const std::string text = EncodeManifest(manifest);
  const auto part = std::as_bytes(std::span(text));
  RETURN_IF_ERROR(store.Put(PathIn(directory, kManifestName), {&part, 1}));
  // Such a removal may have begun meanwhile.
  ASSIGN_OR_RETURN(const StoredCheckpoint whole, FindDirectory(store, directory));
  if (AllPresent(whole, manifest)) return manifest;
  RETURN_IF_ERROR(store.Remove(PathIn(directory, kManifestName)));
  return std::nullopt;
}

void RemoveRemains(CheckpointStore& store, const TrainingPosition& before) {
  const auto steps = ListSteps(store);
  if (!steps) return;
  for (const StoredCheckpoint& stored : *steps) {
    if (stored.has_manifest() || std::tie(stored.membership, stored.step, stored.tick) >=
                                     std::tie(before.membership, before.step, before.tick))
      continue;
    if (!RemoveDirectory(store, stored)) return;
  }
}

Result<Restored> RestoreNewest(CheckpointStore& store, const JobIdentity& job,
                               std::string_view only) {
  ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> steps, ListSteps(store));
  std::vector<std::string> passed_over;
  for (const StoredCheckpoint& stored : steps) {
    if (!only.empty() && stored.name != only) continue;
    if (!stored.has_manifest()) continue;  // an unfinished attempt, never a checkpoint
    Result<Manifest> manifest = ReadManifest(store, stored);
    if (manifest) RETURN_IF_ERROR(CheckJob(stored, *manifest, job));
    Result<StateCopy> state = manifest ? LoadVerified(store, stored, *manifest)
                                       : std::unexpected(std::move(manifest).error());
    if (state)
      return Restored{.manifest = *std::move(manifest),
                      .state = *std::move(state),
                      .passed_over = std::move(passed_over)};
    // A read error may be temporary, and an older checkpoint would lose steps: the caller retries.
    if (state.error().code != ErrorCode::kCorrupt && state.error().code != ErrorCode::kNotFound)
      return std::unexpected(std::move(state).error());
    passed_over.push_back(InContext(stored.name, std::move(state).error()).message);
  }
  if (passed_over.empty()) return Fail(ErrorCode::kNotFound, "there is no checkpoint");
  return Fail(ErrorCode::kCorrupt, Format("none of {} checkpoints verifies; the newest: {}",
                                          passed_over.size(), passed_over.front()));
}

Result<StoredCheckpoint> NewestCheckpoint(CheckpointStore& store) {
  ASSIGN_OR_RETURN(std::vector<StoredCheckpoint> steps, ListSteps(store));
  const auto newest = std::ranges::find_if(steps, &StoredCheckpoint::has_manifest);
  if (newest == steps.end()) return Fail(ErrorCode::kNotFound, "there is no checkpoint");
  return std::move(*newest);
}

Status PruneTo(CheckpointStore& store, const TrainingPosition& written, int keep) {
  ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> steps, ListSteps(store));
  for (const StoredCheckpoint& stored : steps)
    if (stored.membership > written.membership) return {};  // the newer membership prunes
  int kept = 0;
  for (const StoredCheckpoint& stored : steps) {
    const bool ahead = std::tie(stored.step, stored.tick) > std::tie(written.step, written.tick);
    const bool keeps = ahead ? stored.membership == written.membership
                             : stored.has_manifest() && kept++ < std::max(keep, 1);
    if (!keeps) RETURN_IF_ERROR(RemoveDirectory(store, stored));
  }
  return {};
}

Result<Manifest> ExportFinal(CheckpointStore& store, const CheckpointLabel& label,
                             const StateDict& state, const FinalLayout& layout) {
  Result<Manifest> exported = PublishModel(store, kFinalDirectory, label, state, layout);
  if (exported) RemoveTemporaries(store, kFinalDirectory);
  return exported;
}

Result<Manifest> ExportBest(CheckpointStore& store, const CheckpointLabel& label,
                            const StateDict& state, const FinalLayout& layout) {
  const std::string directory = Format("{}-{}", kBestDirectory, NameOf(label.position));
  // Learners that died while they wrote have left some.
  ASSIGN_OR_RETURN(const std::vector<StoredObject> remains,
                   store.List(Format("{}-", kBestDirectory)));
  for (const StoredObject& object : remains) RETURN_IF_ERROR(store.Remove(object.name));
  ASSIGN_OR_RETURN(Manifest exported, PublishModel(store, directory, label, state, layout));
  RETURN_IF_ERROR(store.Replace(directory, kBestDirectory));
  return exported;
}

Status CheckBase(const Manifest& model, const BaseModel& base) {
  if (model.job.base.sha256 == base.sha256) return {};
  return Invalid(Format("the final model was written with {}; this job has {}",
                        TextOf(model.job.base), TextOf(base)));
}

Result<Manifest> ReadFinal(CheckpointStore& store) {
  ASSIGN_OR_RETURN(const StoredCheckpoint final, FindDirectory(store, kFinalDirectory));
  ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(store, final));
  if (!AllPresent(final, manifest))
    return Fail(ErrorCode::kCorrupt, "final: a file is missing or cut");
  return manifest;
}

Status WriteModel(CheckpointStore& store, std::string_view name, const StateDict& state) {
  return store.Put(name, MakeTensorFile(name, ModelOf(state)).Parts());
}

}  // namespace pliant
