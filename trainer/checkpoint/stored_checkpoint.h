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

// The layout of checkpoints in a store, for reading.
namespace pliant {

inline constexpr std::string_view kStepPrefix = "step-";
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kFinalDirectory = "final";
inline constexpr std::string_view kBestDirectory = "best";

std::string PathIn(std::string_view directory, std::string_view name);

// The contents of one directory.
struct StoredCheckpoint {
  std::string name;  // "step-000000001234-t000000001260-m2.5" or "final"
  std::uint64_t step = 0;
  Tick tick = 0;
  MembershipId membership;
  std::map<std::string, std::uint64_t, std::less<>> files;  // name → bytes

  // Without a manifest it is an unfinished attempt.
  bool has_manifest() const { return files.contains(kManifestName); }
  std::uint64_t bytes() const;
  int slices() const;  // the number of learners that wrote it
};

// The directories of checkpoints, the newest first.
Result<std::vector<StoredCheckpoint>> ListSteps(CheckpointStore& store);
// The directory of this name; without files if it does not exist.
Result<StoredCheckpoint> FindDirectory(CheckpointStore& store, std::string_view name);

// A text file in it. kCorrupt: it is too large for one.
Result<std::string> ReadText(CheckpointStore& store, const StoredCheckpoint& stored,
                             std::string_view name);

// kNotFound: there is no manifest. kCorrupt: it is not a valid one.
Result<Manifest> ReadManifest(CheckpointStore& store, const StoredCheckpoint& stored);

// Whether every file of the manifest exists and has the right size.
bool AllPresent(const StoredCheckpoint& stored, const Manifest& manifest);

// Reads the state from all files of the manifest and verifies every checksum. The model's tensors
// get their prefix. kCorrupt: the message says what is wrong.
Result<StateCopy> LoadVerified(CheckpointStore& store, const StoredCheckpoint& stored,
                               const Manifest& manifest);

}  // namespace pliant
