#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/store.h"

// How checkpoints lie in a store, for those who read them.
namespace pliant {

inline constexpr std::string_view kStepPrefix = "step-";
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kFinalDirectory = "final";
inline constexpr std::string_view kFinalFile = "model.safetensors";

std::string PathIn(std::string_view directory, std::string_view name);

// What stands in one directory.
struct StoredCheckpoint {
  std::string name;  // "step-000000001234-t000000001260-m2.5" or "final"
  std::uint64_t step = 0;
  Tick tick = 0;  // 0: its name is of before they had it ("step-000000001234-m2.5")
  MembershipId membership;
  std::map<std::string, std::uint64_t, std::less<>> files;  // name → bytes

  // Without one it is an attempt that did not end.
  bool has_manifest() const { return files.contains(kManifestName); }
  std::uint64_t bytes() const;
  int slices() const;  // learners that wrote it
};

// The steps' directories, the newest first.
Result<std::vector<StoredCheckpoint>> ListSteps(CheckpointStore& store);
// The directory of this name; one that is not there has no files.
Result<StoredCheckpoint> FindDirectory(CheckpointStore& store, std::string_view name);

// A small file of it. kCorrupt: it is not small.
Result<std::string> ReadText(CheckpointStore& store, const StoredCheckpoint& stored,
                             std::string_view name);

// kNotFound: there is no manifest. kCorrupt: it is none.
Result<Manifest> ReadManifest(CheckpointStore& store, const StoredCheckpoint& stored);

// Whether every file of the manifest is there, by its size.
bool AllPresent(const StoredCheckpoint& stored, const Manifest& manifest);

// Everything that the manifest names, verified by its checksums: the state, the model's tensors
// with their prefix. kCorrupt, with the file named.
Result<StateCopy> LoadVerified(CheckpointStore& store, const StoredCheckpoint& stored,
                               const Manifest& manifest);

}  // namespace pliant
