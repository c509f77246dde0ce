#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/checkpoint/state_slice.h"
#include "trainer/checkpoint/store.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace pliant {

// What a checkpoint says of itself, beside its state.
struct CheckpointLabel {
  TrainingPosition position;
  JobIdentity job;
  std::string framework;
};

struct Restored {
  Manifest manifest;
  StateCopy state;
  std::vector<std::string> passed_over;  // newer checkpoints that do not verify, and why
};

// SHA-256 over the model's tensors in order of name: name, NUL, dtype, NUL, shape ("2,3"), NUL,
// bytes. Lower-case hex.
std::string ParametersSha256(const StateDict& state);

// Writes step-…/{model,optimizer}-00001-of-00001.safetensors and then manifest.json. A crash at any
// point leaves the checkpoints before it as they were. If it cannot be written in full, as on a
// full volume, its files are removed. One that is published in slices stays as it is.
Result<Manifest> SaveCheckpoint(CheckpointStore& store, const CheckpointLabel& label,
                                const StateDict& state);

// The same by several learners at once, each with its slice of one state: every one writes its
// files and then slice-….json, which names them, and whoever finds all of those publishes the
// manifest. So no learner waits for another, and none is needed once its slice is written. None:
// slices are missing yet.
Result<std::optional<Manifest>> SaveSlice(CheckpointStore& store, const CheckpointLabel& label,
                                          StateSlice slice, const StateDict& tensors);
// Publishes a checkpoint of which all slices are written, unless it is published.
Result<std::optional<Manifest>> PublishSlices(CheckpointStore& store, const CheckpointLabel& label,
                                              int slices);

// Removes, as far as the store lets it, what attempts before this one left without a manifest:
// those of earlier memberships, and of earlier ticks of the same.
void RemoveRemains(CheckpointStore& store, const TrainingPosition& before);

// The newest checkpoint of which everything verifies. kNotFound when there is none at all, kCorrupt
// when none of them verifies, kInvalid when the newest one is of a job with another seed, global
// batch size, number of shards or of samples.
// `only`: no other than the one of this name.
Result<Restored> RestoreNewest(CheckpointStore& store, const JobIdentity& job,
                               std::string_view only = {});

// The newest checkpoint, which may not verify: a listing tells. kNotFound: there is none.
Result<StoredCheckpoint> NewestCheckpoint(CheckpointStore& store);

// Removes all but the newest `keep` (at least 1) checkpoints up to `written`, remains of attempts,
// and what an older membership left ahead of it, which did not verify when this job went back
// behind it. Does nothing when a newer membership has written.
Status PruneTo(CheckpointStore& store, const TrainingPosition& written, int keep);

// final/{model.safetensors, manifest.json}: the model for its users, any safetensors reader reads
// it.
Result<Manifest> ExportFinal(CheckpointStore& store, const CheckpointLabel& label,
                             const StateDict& state);
// The model alone, as in a checkpoint and in final/.
Status WriteModel(CheckpointStore& store, std::string_view name, const StateDict& state);
// The manifest of a final model whose file is there in full. kNotFound: not published.
Result<Manifest> ReadFinal(CheckpointStore& store);

}  // namespace pliant
