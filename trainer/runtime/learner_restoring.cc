#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "trainer/runtime/learner_loop_impl.h"

// Rank 0 finds what a membership begins from when nobody came to it by a boundary: a state that a
// member holds, or the newest checkpoint. One that several learners wrote is read by all: each
// reads a part of its files and sends it to all others, so that every byte is read once, and all
// are in step from the first tick. Whatever comes in between, rank 0 gives the parts up, and reads
// what verifies by itself; the others follow it. Who has the whole waits for rank 0's word before
// it says so: until then rank 0 may begin from something else.

namespace pliant {
namespace {

constexpr Duration kVolumePatience = std::chrono::seconds(3);
constexpr Duration kPartsCheck = std::chrono::milliseconds(500);
// Others read at most twice as much as one does (FilesOfReader). But what it has written itself it
// may find in its memory, while they wait for the volume.
constexpr Duration kPartsPatience = std::chrono::seconds(10);
constexpr int kPartsPatienceTimes = 3;
constexpr std::size_t kPartBytesPerSecondLeast = std::size_t{64} << 20;

Duration PatienceAfter(Duration took, std::size_t bytes) {
  const std::chrono::seconds slowest(2 * bytes / kPartBytesPerSecondLeast);
  return std::max<Duration>({kPartsPatience, kPartsPatienceTimes * took, slowest});
}

Bytes BytesOf(std::string_view text) {
  const auto owner = std::make_shared<const std::string>(text);
  return {.owner = owner, .view = std::as_bytes(std::span(*owner))};
}

}  // namespace

// Rank 0, when nobody came here by a boundary: after a crash, or at a start. Those who are left may
// be behind the newest checkpoint, when all who were ahead were lost.
void LearnerLoop::Impl::LookForCheckpoint() {
  if (looking_for_ == membership_.id) return;
  looking_for_ = membership_.id;
  volume_answered_ = false;
  const auto answer = [this, id = membership_.id](Result<StoredCheckpoint> newest) {
    if (membership_.id != id || phase_ != Phase::kOpening) return;
    if (!std::exchange(volume_answered_, true)) OnNewestCheckpoint(std::move(newest));
  };
  parts_.checkpointer.FindNewest(Guarded<Result<StoredCheckpoint>>(answer));
  // Who holds a state does not stand still for a volume that hangs.
  if (!opening_->furthest()) return;
  After(kVolumePatience,
        [answer] { answer(pliant::Fail(ErrorCode::kTimeout, "the volume does not answer")); });
}

void LearnerLoop::Impl::OnNewestCheckpoint(Result<StoredCheckpoint> newest) {
  const std::optional<Holding> furthest = opening_->furthest();
  const auto again = [this, id = membership_.id] {
    if (membership_.id != id || phase_ != Phase::kOpening) return;
    looking_for_.reset();
    LookForCheckpoint();
  };
  if (!newest && newest.error().code != ErrorCode::kNotFound) {
    if (!furthest) return TryVolumeAgain(newest.error(), again);
    log::Warning("checkpoints cannot be looked at, going on without",
                 {{"cause", newest.error().message}});
    return SettleOpening();
  }
  const auto take =
      Guarded<Result<Restored>>([this, again, id = membership_.id](Result<Restored> restored) {
        if (membership_.id != id || phase_ != Phase::kOpening) return;
        if (!restored && restored.error().code == ErrorCode::kUnavailable) {
          return TryVolumeAgain(restored.error(), again);
        }
        OnRestored(std::move(restored));
      });
  if (!newest && !furthest) return parts_.checkpointer.RestoreFirst(Label().job, take);
  if (!newest || (furthest && newest->step <= schedule_.StepsBefore(furthest->applied_ticks))) {
    return SettleOpening();
  }
  // After a start. Once there is a state anywhere, who is behind follows.
  if (!furthest && newest->slices() > 1 && membership_.world_size() > 1 && PartsCanCome()) {
    SendToMembers(FrameKind::kRestore, BytesOf(newest->name));
    return ReadPart(newest->name);
  }
  parts_.checkpointer.Restore(Label().job, take);
}

void LearnerLoop::Impl::OnRestored(Result<Restored> restored) {
  const std::optional<Holding> furthest = opening_->furthest();
  volume_tries_ = 0;
  if (!restored && restored.error().code == ErrorCode::kNotFound && !furthest) {
    log::Info("starting afresh");
    has_state_ = true;
    applied_ = 0;
    return SettleOpening();
  }
  if (!restored) {
    // Without a state there is nothing else to go on from, and a fresh start would undo everything.
    if (!furthest) return Fail(restored.error());
    log::Warning("checkpoint passed over", {{"cause", restored.error().message}});
    return SettleOpening();
  }
  for (const std::string& passed_over : restored->passed_over) {
    log::Warning("checkpoint passed over", {{"cause", passed_over}});
  }
  const TrainingPosition& position = restored->manifest.position;
  if (!IsOfThisSchedule(position)) {
    return Fail(
        {ErrorCode::kInvalid,
         Format("the checkpoint of step {} is of a job with other data or epochs", position.step)});
  }
  // Newer ones may not have verified.
  if (furthest && position.step <= schedule_.StepsBefore(furthest->applied_ticks)) {
    return SettleOpening();
  }
  log::Info("restored", {{"step", position.step}, {"membership", ToString(position.membership)}});
  current_ = true;
  Load(std::make_shared<const StateCopy>(std::move(restored->state)),
       {.has_state = true,
        .applied_ticks = position.tick,
        .lineage = split_.bitwise() ? MembershipId{} : position.membership,
        .current = true});
}

bool LearnerLoop::Impl::IsOfThisSchedule(const TrainingPosition& position) const {
  return position.tick <= schedule_.total_ticks() &&
         schedule_.StepsBefore(position.tick) == position.step;
}

void LearnerLoop::Impl::SettleOpening() {
  current_ = true;
  opening_->SetOwn(holding());
  SendToMembers(FrameKind::kOpen, EncodeHolding(holding()));
  AdvanceOpening();
}

// ---- In parts ----

// The parts of others may come before rank 0's word.
LearnerLoop::Impl::Restoring& LearnerLoop::Impl::restoring() {
  if (!restoring_) {
    restoring_.emplace(
        Restoring{.parts = PartsReceiver(parts_.compute.state_shape(), membership_.world_size()),
                  .patience = kPartsPatience});
  }
  return *restoring_;
}

void LearnerLoop::Impl::ReadPart(const std::string& checkpoint) {
  restoring().began = parts_.loop.Now();
  parts_.checkpointer.RestorePart(
      Label().job, checkpoint, rank(), membership_.world_size(),
      Guarded<Result<Restored>>([this, id = membership_.id](Result<Restored> part) {
        if (membership_.id == id && restoring_) OnPartRead(std::move(part));
      }));
  AwaitParts();
}

void LearnerLoop::Impl::OnPartRead(Result<Restored> part) {
  if (!part) return GiveUpParts(part.error().message);
  const TrainingPosition& position = part->manifest.position;
  if (!IsOfThisSchedule(position)) return GiveUpParts("it is of a job with other data or epochs");
  Result<std::vector<std::uint32_t>> places =
      PlacesIn(parts_.compute.state_shape(), part->state.view());
  if (!places) return GiveUpParts(places.error().message);
  restoring_->heard = parts_.loop.Now();
  const Duration took = restoring_->heard - restoring_->began;
  restoring_->patience = PatienceAfter(took, part->state.bytes());
  log::Info(
      "part of a checkpoint read",
      {{"step", position.step}, {"bytes", part->state.bytes()}, {"seconds", ToSeconds(took)}});
  restoring_->membership = position.membership;
  restoring_->places = *std::move(places);
  restoring_->sender.emplace(membership_.id, position.tick,
                             std::make_shared<const StateCopy>(std::move(part->state)));
  std::vector<int> others;
  for (int rank = 0; rank < membership_.world_size(); ++rank) {
    if (rank != this->rank()) others.push_back(rank);
  }
  restoring_->pace.emplace(others);
  SendPart();
}

void LearnerLoop::Impl::SendPart() {
  Status fits;
  const auto send = [&](Frame frame) {
    frame.header.kind = FrameKind::kPart;
    frame.header.bucket = restoring_->places[frame.header.bucket];
    for (const Member& member : membership_.members) {
      if (member.id != options_.self) Send(member.id, frame);
    }
    if (fits) fits = restoring_->parts.OnFrame(rank(), frame);
  };
  while (!restoring_->sender->done() && restoring_->pace->MaySend()) {
    restoring_->pace->OnSent();
    restoring_->sender->SendBatch(options_.state_batch_bytes, send);
  }
  if (!fits) return GiveUpParts(fits.error().message);
  if (restoring_->sender->done()) AdvanceOpening();
}

void LearnerLoop::Impl::OnPartTaken(int rank) {
  if (!restoring_ || !restoring_->sender) return;
  restoring_->heard = parts_.loop.Now();
  restoring_->pace->OnTaken(rank);
  if (!restoring_->sender->done()) SendPart();
}

void LearnerLoop::Impl::OnPartFrame(int rank, const Frame& frame) {
  // Also what is of no use here any more: others wait for the sender, and it for this.
  if ((frame.header.node & kLastOfBatch) != 0) {
    SendToPeer(member(rank), FrameKind::kPartTaken);
  }
  if (phase_ != Phase::kOpening || has_state_ || loading_ || parts_over_) return;
  restoring().heard = parts_.loop.Now();
  if (const Status status = restoring_->parts.OnFrame(rank, frame); !status) {
    return GiveUpParts(Format("{}: {}", member(rank).name, status.error().message));
  }
  if (restoring_->parts.done()) AdvanceOpening();
}

void LearnerLoop::Impl::OnRestoreFrame(int rank, const Frame& frame) {
  if (phase_ != Phase::kOpening || has_state_ || loading_) return;
  const auto payload = frame.payload.view;
  const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (this->rank() == 0) {
    if (restoring_) GiveUpParts(Format("{}: {}", member(rank).name, text));
  } else if (rank == 0 && text.empty()) {
    restoring_.reset();
    parts_over_ = true;
    AdvanceOpening();
  } else if (rank == 0 && !PartsCanCome()) {
    GiveUpParts("it is not, or was not, connected to all");
  } else if (rank == 0) {
    ReadPart(text);
  }
}

// With a connection is lost what was under way on it.
void LearnerLoop::Impl::OnLostWhileRestoring(int rank) {
  if (has_state_ || loading_ || parts_over_) return;
  if (!restoring_) {
    parts_over_ = true;
    return;
  }
  const bool all_sent = restoring_->sender && restoring_->sender->done();
  if (rank == 0 || !all_sent || !restoring_->parts.has_all_of(rank)) {
    GiveUpParts(Format("lost {}", member(rank).name));
  }
}

// Rank 0 gives up for all, when it has read its own and nothing comes: some volume hangs, or a
// link. Once it begins with what came, who lacks some of it gives up for itself.
void LearnerLoop::Impl::AwaitParts() {
  After(kPartsCheck, [this, id = membership_.id] {
    if (membership_.id != id || phase_ != Phase::kOpening || !restoring_) return;
    const std::optional<Holding>& told = opening_->holding(0);
    const bool decides = rank() == 0 ? restoring_->sender.has_value() : told && told->current;
    if (decides && parts_.loop.Now() - restoring_->heard >= restoring_->patience) {
      return GiveUpParts("nothing comes of a part");
    }
    AwaitParts();
  });
}

void LearnerLoop::Impl::LoadWhenWhole() {
  if (!restoring_->parts.done()) return;
  volume_tries_ = 0;
  Holding whole{.has_state = true, .applied_ticks = restoring_->parts.applied_ticks()};
  if (rank() == 0) {
    current_ = whole.current = true;
    if (!split_.bitwise()) whole.lineage = restoring_->membership;
    log::Info("restored", {{"step", schedule_.StepsBefore(whole.applied_ticks)},
                           {"membership", ToString(restoring_->membership)}});
    // Ahead of loading it: all do so at a time. Who cannot load it ends.
    opening_->SetOwn(whole);
    SendToMembers(FrameKind::kOpen, EncodeHolding(whole));
  } else {
    const std::optional<Holding>& told = opening_->holding(0);
    if (!told || !told->current) return;
    if (told->applied_ticks != whole.applied_ticks) {
      return GiveUpParts("rank 0 begins with another checkpoint");
    }
    whole.lineage = told->lineage;
  }
  const std::shared_ptr<const StateCopy> state = restoring_->parts.Take();
  restoring_.reset();
  Load(state, whole);
}

void LearnerLoop::Impl::GiveUpParts(const std::string& cause) {
  restoring_.reset();
  parts_over_ = true;
  log::Warning("checkpoint is not read in parts", {{"cause", cause}});
  if (rank() == 0) {
    SendToMembers(FrameKind::kRestore);
    looking_for_.reset();
  } else {
    SendToPeer(member(0), FrameKind::kRestore, BytesOf(cause));
  }
  AdvanceOpening();
}

}  // namespace pliant
