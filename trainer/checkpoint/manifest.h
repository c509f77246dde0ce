#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/membership/types.h"

namespace pliant {

// What a job's results depend on: a checkpoint of another one is refused.
struct JobIdentity {
  std::uint64_t seed = 0;
  std::uint64_t global_batch_size = 0;
  int logical_shards = 0;
  // None: not known, as in manifests of before they were written there.
  std::optional<std::uint64_t> train_samples = std::nullopt;
  std::optional<std::uint64_t> test_samples = std::nullopt;
  bool operator==(const JobIdentity&) const = default;
};

// Where training stood.
struct TrainingPosition {
  std::uint64_t step = 0;   // optimizer steps committed
  Tick tick = 0;            // ticks committed: the next one to do
  std::uint64_t epoch = 0;  // of the next tick
  MembershipId membership;  // that wrote it
  bool operator==(const TrainingPosition&) const = default;
};

struct ManifestFile {
  std::string name;  // beside the manifest
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const ManifestFile&) const = default;
};

// manifest.json (docs/contracts.md §5): written last, so that a checkpoint without a valid one does
// not exist.
struct Manifest {
  TrainingPosition position;
  JobIdentity job;
  std::string framework;
  std::string parameters_sha256;  // empty when several learners wrote it, each a slice
  std::vector<ManifestFile> files;
  bool operator==(const Manifest&) const = default;
};

std::string EncodeManifest(const Manifest& manifest);
// The files of one slice, before there is a manifest.
std::string EncodeFiles(const std::vector<ManifestFile>& files);
Result<std::vector<ManifestFile>> DecodeFiles(std::string_view json);
// kCorrupt, with the field named.
Result<Manifest> DecodeManifest(std::string_view json);

}  // namespace pliant
