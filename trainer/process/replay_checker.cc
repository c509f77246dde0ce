#include "trainer/process/replay_checker.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "trainer/checkpoint/state_difference.h"

namespace pliant {

Result<std::unique_ptr<ReplayChecker>> ReplayChecker::Open(EventLoop& loop, CheckpointStore& store,
                                                           const ReplayRange& range,
                                                           Verdict verdict) {
  ASSIGN_OR_RETURN(std::vector<StoredCheckpoint> steps, ListSteps(store));
  std::erase_if(steps, [](const StoredCheckpoint& stored) { return !stored.has_manifest(); });
  std::ranges::reverse(steps);
  std::unique_ptr<ReplayChecker> checker(new ReplayChecker(loop, store, std::move(verdict)));
  // If a step has several, the last one counts: a newer membership wrote it, or it holds what an
  // evaluation left.
  const auto from = std::ranges::find_last(steps, range.from, &StoredCheckpoint::step);
  if (from.empty()) {
    return Fail(ErrorCode::kNotFound, Format("no checkpoint of step {}", range.from));
  }
  checker->from_ = from.front();
  for (StoredCheckpoint& stored : steps) {
    if (stored.step <= range.from || (range.to > 0 && stored.step > range.to)) continue;
    // Not all names contain the tick.
    ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(store, stored));
    stored.tick = manifest.position.tick;
    checker->ticks_.insert(stored.tick);
    checker->targets_.push_back(std::move(stored));
  }
  std::ranges::stable_sort(checker->targets_, {}, &StoredCheckpoint::tick);
  checker->final_ = range.to == 0 && ReadFinal(store).has_value();
  if (checker->targets_.empty() && !checker->final_) {
    return Fail(ErrorCode::kNotFound,
                Format("no later checkpoint than that of step {} to compare", range.from));
  }
  return checker;
}

template <typename T>
void ReplayChecker::Answer(Done<T> done, Result<T> result) {
  // Shared, because a Restored cannot be copied and a std::function must be.
  auto shared = std::make_shared<Result<T>>(std::move(result));
  loop_.Post(lifetime_.Guard([done = std::move(done), shared] { done(std::move(*shared)); }));
}

void ReplayChecker::Save(CheckpointLabel label, StateSlice, std::shared_ptr<const StateCopy> state,
                         int, Done<std::optional<Manifest>> done) {
  CompareUpTo(label.position, state->view());
  Answer<std::optional<Manifest>>(std::move(done),
                                  Manifest{.position = label.position, .job = label.job});
}

// By ticks: an evaluation may change the state between two steps.
void ReplayChecker::CompareUpTo(const TrainingPosition& position, const StateDict& now) {
  while (verdict_ && !targets_.empty() && targets_.front().tick <= position.tick) {
    const StoredCheckpoint then = std::move(targets_.front());
    targets_.erase(targets_.begin());
    Judge(then.step, then.tick == position.tick
                         ? CompareWith(then, now)
                         : Fail(ErrorCode::kUnavailable, Format("step {} was skipped", then.step)));
  }
}

Status ReplayChecker::CompareWith(const StoredCheckpoint& then, const StateDict& now) const {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(store_, then));
  ASSIGN_OR_RETURN(const StateCopy written, LoadVerified(store_, then, manifest));
  const auto difference = FindDifference(written.view(), now);
  if (!difference) return {};
  return Fail(ErrorCode::kCorrupt, Format("{}: {}", then.name, ToString(*difference)));
}

void ReplayChecker::Judge(std::uint64_t step, const Status& same) {
  if (!same) return Say(std::unexpected(same.error()));
  ++compared_;
  log::Info("computed again, with the same bits", {{"step", step}});
  if (!targets_.empty() || final_) return;
  Say(Format("{} checkpoints after step {} are the same bits", compared_, from_.step));
}

void ReplayChecker::Say(Result<std::string> verdict) {
  const Verdict say = std::exchange(verdict_, nullptr);
  say(std::move(verdict));
}

void ReplayChecker::ExportFinal(CheckpointLabel label, std::shared_ptr<const StateCopy> state,
                                FinalLayout layout, Done<Manifest> done) {
  const Result<Manifest> then = ReadFinal(store_);
  StateCopy home;
  if (Status copied = home.CopyFrom(layout.home); !copied) {
    return Answer<Manifest>(std::move(done), std::unexpected(std::move(copied).error()));
  }
  const std::string now = ParametersSha256(FinalModelOf(state->view(), layout, home.view()));
  CompareUpTo(label.position, state->view());
  if (std::exchange(final_, false) && verdict_) {
    const bool same = then && then->parameters_sha256 == now;
    Judge(label.position.step,
          same ? Status{}
               : Fail(ErrorCode::kCorrupt,
                      Format("the final model differs: its parameters' hash is {}, and {} "
                             "when computed again",
                             then ? then->parameters_sha256 : "unknown", now)));
  }
  Answer<Manifest>(
      std::move(done),
      Manifest{.position = label.position, .job = label.job, .parameters_sha256 = now});
}

void ReplayChecker::Restore(JobIdentity job, Done<Restored> done) {
  Answer<Restored>(std::move(done), RestoreNewest(store_, job, from_.name));
}

void ReplayChecker::FindNewest(Done<StoredCheckpoint> done) {
  Answer<StoredCheckpoint>(std::move(done), from_);
}

void ReplayChecker::RestoreFirst(JobIdentity job, Done<Restored> done) {
  Restore(job, std::move(done));
}
void ReplayChecker::Publish(CheckpointLabel label, int, int, Done<std::optional<Manifest>> done) {
  Answer<std::optional<Manifest>>(std::move(done), Manifest{.position = label.position});
}

void ReplayChecker::ExportBest(CheckpointLabel label, std::shared_ptr<const StateCopy>, FinalLayout,
                               Done<Manifest> done) {
  Answer<Manifest>(std::move(done), Manifest{.position = label.position});
}

void ReplayChecker::FindFinal(Done<Manifest> done) {
  Answer<Manifest>(std::move(done), Fail(ErrorCode::kNotFound, "it is to be computed again"));
}

}  // namespace pliant
