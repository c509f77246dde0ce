#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/final_layout.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/checkpoint/state_slice.h"
#include "trainer/checkpoint/store.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace pliant {

// The metadata that a checkpoint stores with its state.
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
// point leaves the earlier checkpoints unchanged. If the checkpoint cannot be written completely,
// as on a full volume, its files are removed. One that is published in slices stays as it is.
Result<Manifest> SaveCheckpoint(CheckpointStore& store, const CheckpointLabel& label,
                                const StateDict& state);

// The same by several learners at once, each with its slice of one state. Each writes its files and
// then slice-….json, which lists them; a learner that finds all lists publishes the manifest. So no
// learner waits for another, and none is needed after its slice is written. None: slices are still
// missing.
Result<std::optional<Manifest>> SaveSlice(CheckpointStore& store, const CheckpointLabel& label,
                                          StateSlice slice, const StateDict& tensors);
// Publishes a checkpoint if all its slices are written and it is not published yet.
Result<std::optional<Manifest>> PublishSlices(CheckpointStore& store, const CheckpointLabel& label,
                                              int slices);

// Removes, as far as the store allows, what unfinished attempts left without a manifest: attempts
// of earlier memberships, and of earlier ticks of this membership.
void RemoveRemains(CheckpointStore& store, const TrainingPosition& before);

// The newest checkpoint that verifies completely. kNotFound: there is none at all. kCorrupt: none
// of them verifies. kInvalid: the newest one was written with another seed, global batch size,
// number of shards, number of samples or base. `only`: considers only the checkpoint of this name.
Result<Restored> RestoreNewest(CheckpointStore& store, const JobIdentity& job,
                               std::string_view only = {});

// The newest checkpoint of the listing, not verified. kNotFound: there is none.
Result<StoredCheckpoint> NewestCheckpoint(CheckpointStore& store);

// Keeps the newest `keep` (at least 1) checkpoints up to `written`. Removes the older ones, remains
// of attempts, and those that an older membership left ahead of `written`: they did not verify, so
// the job restarted from an earlier one. Does nothing if a newer membership has written.
Status PruneTo(CheckpointStore& store, const TrainingPosition& written, int keep);

// Writes final/: the trained model in this layout, and manifest.json with the hash of what the
// files have.
Result<Manifest> ExportFinal(CheckpointStore& store, const CheckpointLabel& label,
                             const StateDict& state, const FinalLayout& layout = {});
// Writes best/, in the same layout, in place of the one that is there: a crash leaves one of them
// whole. It is first written below another name, by which members of other memberships know it.
Result<Manifest> ExportBest(CheckpointStore& store, const CheckpointLabel& label,
                            const StateDict& state, const FinalLayout& layout = {});
// Writes only the model, in the format of a checkpoint and of final/.
Status WriteModel(CheckpointStore& store, std::string_view name, const StateDict& state);
// kInvalid: this model was made on another base, so it does not fit one that is loaded with `base`.
Status CheckBase(const Manifest& model, const BaseModel& base);
// The manifest of the final model. kNotFound: not published. kCorrupt: its file is incomplete.
Result<Manifest> ReadFinal(CheckpointStore& store);

}  // namespace pliant
