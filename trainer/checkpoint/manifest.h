#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/data/batch_segments.h"
#include "trainer/data/noise_window.h"
#include "trainer/membership/types.h"

namespace pliant {

// The frozen parameters of a model that each learner has at home, by their content. No part of the
// state, so learners and checkpoints of different ones must not mix.
struct BaseModel {
  std::string sha256;  // hex; empty: there are none, all parameters are in the state
  std::string name;    // for people, with a revision: "gpt2@607a30d"; empty: unknown
  bool operator==(const BaseModel&) const = default;
};

// The settings that a job's results depend on: a checkpoint with other ones is refused.
struct JobIdentity {
  std::uint64_t seed = 0;
  std::uint64_t global_batch_size = 0;
  int logical_shards = 0;
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;
  BaseModel base = {};
  bool operator==(const JobIdentity&) const = default;
};

// The point that training has reached.
struct TrainingPosition {
  std::uint64_t step = 0;   // optimizer steps committed
  Tick tick = 0;            // ticks committed, so also the number of the next tick
  std::uint64_t epoch = 0;  // the epoch of the next tick
  MembershipId membership;  // the membership that wrote the checkpoint
  NoiseWindow noise;
  BatchSegments batches;
  std::uint64_t evaluate_every = 0;  // as in DataSpec: ticks before this one depend on it
  bool operator==(const TrainingPosition&) const = default;
};

struct ManifestFile {
  std::string name;  // in the manifest's directory
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const ManifestFile&) const = default;
};

// manifest.json (docs/contracts.md §5). It is written last: a directory without a valid manifest is
// not a checkpoint.
struct Manifest {
  TrainingPosition position;
  JobIdentity job;
  std::string framework;
  std::string parameters_sha256;  // empty if several learners wrote the checkpoint, each a slice
  std::vector<ManifestFile> files;
  bool operator==(const Manifest&) const = default;
};

std::string EncodeManifest(const Manifest& manifest);
// The list of one slice's files, which exists before the manifest.
std::string EncodeFiles(const std::vector<ManifestFile>& files);
Result<std::vector<ManifestFile>> DecodeFiles(std::string_view json);
// kCorrupt: the message names the field.
Result<Manifest> DecodeManifest(std::string_view json);

}  // namespace pliant
