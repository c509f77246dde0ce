#include "trainer/runtime/opening_run.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/runtime/checkpoint_label.h"

namespace pliant {
namespace {

constexpr Duration kConnectionsCheck = std::chrono::milliseconds(200);
// A connection that worked and broke while a membership opens gets less time than a new one.
constexpr Duration kMaxReconnect = std::chrono::seconds(1);
// How long members that hold a state wait for the volume to name its newest checkpoint.
constexpr Duration kVolumeTimeout = std::chrono::seconds(3);

}  // namespace

OpeningRun::OpeningRun(Options options, const LearnerContext& parts, Owner& owner, StateSummary own)
    : options_(std::move(options)),
      parts_(parts),
      owner_(owner),
      opening_(options_.world_size, options_.self, std::move(own)) {}

// ---- Connections ----

void OpeningRun::Begin() {
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (rank != options_.self) missing_since_.emplace(rank, parts_.tasks.Now());
  }
  for (const int rank : parts_.peers.ConnectedRanks()) {
    missing_since_.erase(rank);
    parts_.peers.SendTo(rank, FrameKind::kOpen, EncodeStateSummary(opening_.own()));
  }
  CheckConnections();
}

void OpeningRun::CheckConnections() {
  Loss absent{.accused = {}, .cause = "no connection"};
  for (const auto& [rank, since] : missing_since_) {
    if (parts_.tasks.Now() - since >= options_.timeout)
      absent.accused.push_back(parts_.view.member(rank));
  }
  if (!absent.accused.empty()) {
    std::ranges::sort(absent.accused);
    return parts_.moves.Then(StopMove{std::move(absent)});
  }
  parts_.tasks.After(kConnectionsCheck, lifetime_.Guard([this] { CheckConnections(); }));
}

void OpeningRun::OnConnected(int rank) {
  missing_since_.erase(rank);
  // Messages on an earlier connection may be lost.
  parts_.peers.SendTo(rank, FrameKind::kOpen, EncodeStateSummary(opening_.own()));
  if (opening_.reported_ready()) parts_.peers.SendTo(rank, FrameKind::kOpened, {});
  if (fetching_from_ == rank) Fetch(rank);
  parts_.moves.Then(SimpleMove::kAdvanceOpening);
}

bool OpeningRun::OnLost(int rank) {
  if (!opening_.OnLinkLost(rank)) return false;
  // The peer may not have noticed yet that its connection to this member broke.
  missing_since_[rank] = parts_.tasks.Now() - options_.timeout + kMaxReconnect;
  return true;
}

// ---- What the members hold ----

Status OpeningRun::OnOpenFrame(int rank, const Frame& frame) {
  ASSIGN_OR_RETURN(const StateSummary holding,
                   DecodeStateSummary(frame.payload.view, parts_.state.schedule, options_.bitwise));
  opening_.OnOpen(rank, holding);
  parts_.moves.Then(SimpleMove::kAdvanceOpening);
  return {};
}

void OpeningRun::OnOpenedFrame(int rank) {
  opening_.OnOpened(rank);
  parts_.moves.Then(SimpleMove::kAdvanceOpening);
}

void OpeningRun::Advance() {
  switch (opening_.next()) {
    case Opening::Next::kWait:
      return;
    case Opening::Next::kRestore:
      return LookForCheckpoint();
    case Opening::Next::kFetch:
      if (fetching_from_ != opening_.source()) Fetch(opening_.source());
      return;
    case Opening::Next::kSayReady:
      opening_.SetReportedReady();
      parts_.peers.SendToAll(FrameKind::kOpened, {});
      return parts_.moves.Then(SimpleMove::kAdvanceOpening);
    case Opening::Next::kBegin:
      // Wait for all connections: readiness is not sent again once ticks begin.
      if (missing_since_.empty()) parts_.moves.Then(SimpleMove::kBeginTraining);
      return;
  }
}

// ---- A state from another member ----

void OpeningRun::Fetch(int source) {
  fetching_from_ = source;
  receiver_.reset();
  parts_.peers.SendTo(source, FrameKind::kStateRequest, {});
}

void OpeningRun::ServeState(int rank, bool has_state, Tick applied) {
  if (!has_state) return;
  parts_.compute.CopyState(
      {}, parts_.tasks.Guard<Result<std::shared_ptr<const StateCopy>>>(lifetime_.Guard(
              [this, rank, applied](const Result<std::shared_ptr<const StateCopy>>& state) {
                if (!state) return owner_.Fail(state.error());
                parts_.states.Begin(rank, StateSender(options_.membership, applied, *state));
              })));
}

void OpeningRun::OnStateFrame(int rank, const Frame& frame) {
  if (fetching_from_ != rank) return;
  if (!receiver_) {
    // Skip the rest of an answer to an earlier request.
    if ((frame.header.node & kFirstStateFrame) == 0) return;
    fetched_ = std::make_shared<StateCopy>(StateCopy::Like(parts_.compute.state_shape()));
    receiver_.emplace(fetched_->view());
  }
  if (const Status status = receiver_->OnFrame(frame); !status) {
    return parts_.moves.Accuse(parts_.view.member(rank), status.error().message);
  }
  if ((frame.header.node & kLastOfBatch) != 0) parts_.peers.AskForMoreState(rank);
  if (!receiver_->done()) return;
  StateSummary holding = *opening_.holding(rank);
  if (receiver_->applied_ticks() != holding.position.applied_ticks) {
    return parts_.moves.Accuse(parts_.view.member(rank), "a state of another tick than it said");
  }
  holding.position.has_state = true;
  holding.current = opening_.own().current;
  holding.finished.clear();
  receiver_.reset();
  owner_.LoadState(std::exchange(fetched_, nullptr), std::move(holding));
}

void OpeningRun::OnLoaded(const StateSummary& holding) {
  fetching_from_.reset();
  opening_.SetOwn(holding);
  // The others may have waited for rank 0 to have a state.
  SayWhatItHolds();
  parts_.moves.Then(SimpleMove::kAdvanceOpening);
}

// ---- A checkpoint ----

// For rank 0, when nobody came here by a boundary: after a crash, or at a start. The remaining
// members may be behind the newest checkpoint, if all that were ahead were lost.
void OpeningRun::LookForCheckpoint() {
  if (!std::exchange(looking_, true)) Look();
}

void OpeningRun::Look() {
  if (opening_.furthest() && !std::exchange(answer_awaited_, true)) {
    parts_.tasks.After(kVolumeTimeout, look_.Guard([this] {
      ContinueWithout({ErrorCode::kTimeout, "the volume does not answer in time"});
    }));
  }
  parts_.checkpointer.FindNewest(parts_.tasks.Guard<Result<StoredCheckpoint>>(
      look_.Guard([this](const Result<StoredCheckpoint>& newest) { OnNewest(newest); })));
}

// A checkpoint that cannot be read now may be readable in a moment, and may be ahead of the
// members' states.
bool OpeningRun::LooksAgain(const Error& error) {
  if (!parts_.volume_retry.OnFailed()) return false;
  log::Warning("checkpoint volume cannot be read", {{"cause", error.message}});
  parts_.tasks.After(VolumeRetry::kPause, look_.Guard([this] { Look(); }));
  return true;
}

void OpeningRun::OnNewest(const Result<StoredCheckpoint>& newest) {
  const std::optional<StateSummary> furthest = opening_.furthest();
  if (!newest && newest.error().code != ErrorCode::kNotFound) {
    const bool may_pass = !furthest || newest.error().code == ErrorCode::kUnavailable;
    if (may_pass && LooksAgain(newest.error())) return;
    return ContinueWithout(newest.error());
  }
  look_.Renew();
  answer_awaited_ = false;
  const auto restored =
      parts_.tasks.Guard<Result<Restored>>(lifetime_.Guard([this](Result<Restored> found) {
        const bool may_pass = !found && found.error().code == ErrorCode::kUnavailable;
        if (may_pass && LooksAgain(found.error())) return;
        OnRestored(std::move(found));
      }));
  if (!newest && !furthest) return parts_.checkpointer.RestoreFirst(options_.job, restored);
  if (!newest || (furthest && newest->step <= StepsBefore(furthest->position))) {
    return Settle();
  }
  parts_.checkpointer.Restore(options_.job, restored);
}

void OpeningRun::ContinueWithout(const Error& error) {
  look_.Renew();
  if (!opening_.furthest()) return owner_.Fail(InContext("checkpoint volume", error));
  log::Warning("checkpoints cannot be read, continuing without them", {{"cause", error.message}});
  Settle();
}

void OpeningRun::OnRestored(Result<Restored> restored) {
  const std::optional<StateSummary> furthest = opening_.furthest();
  if (!restored && restored.error().code == ErrorCode::kNotFound && !furthest) {
    log::Info("starting afresh");
    parts_.state.MoveTo({.has_state = true});
    opening_.SetOwn({.position = {.has_state = true}});
    return Settle();
  }
  if (!restored) {
    // Nobody holds a state, so nothing else can be continued, and a fresh start would undo
    // everything.
    if (!furthest) {
      const bool read = restored.error().code != ErrorCode::kUnavailable;
      return owner_.Fail(read ? restored.error()
                              : InContext("checkpoint volume", std::move(restored).error()));
    }
    log::Warning("checkpoint passed over", {{"cause", restored.error().message}});
    return Settle();
  }
  for (const std::string& passed_over : restored->passed_over) {
    log::Warning("checkpoint passed over", {{"cause", passed_over}});
  }
  const TrainingPosition position = PositionIn(parts_.state.schedule, restored->manifest.position);
  if (const Status fits = CheckPosition(position); !fits) {
    return owner_.Fail({ErrorCode::kInvalid, Format("the checkpoint of step {} {}", position.step,
                                                    fits.error().message)});
  }
  // Newer checkpoints may have failed verification.
  if (furthest && position.step <= StepsBefore(furthest->position)) {
    return Settle();
  }
  parts_.volume_retry.Reset();
  log::Info("restored", {{"step", position.step}, {"membership", ToString(position.membership)}});
  owner_.LoadState(std::make_shared<const StateCopy>(std::move(restored->state)),
                   {.position = {.has_state = true,
                                 .applied_ticks = position.tick,
                                 .lineage = options_.bitwise ? MembershipId{} : position.membership,
                                 .noise = position.noise,
                                 .batches = position.batches},
                    .current = true});
}

std::uint64_t OpeningRun::StepsBefore(const Position& position) const {
  const Result<Schedule> schedule = parts_.state.schedule.With(position.batches);
  CHECK(schedule, "segments are checked where they come from");
  return schedule->StepsBefore(position.applied_ticks);
}

Status OpeningRun::CheckPosition(const TrainingPosition& position) const {
  const int allowed = parts_.state.schedule.spec().max_doublings;
  if (!position.batches.empty() && allowed == 0) {
    return Invalid("is of a job whose batch grew, and this job's is constant");
  }
  for (const BatchSegment& segment : position.batches) {
    if (segment.doublings <= allowed) continue;
    return Invalid(Format(
        "is of a job whose batch was doubled {} times, and this job's maxBatchSize allows {}: use "
        "a larger one",
        segment.doublings, allowed));
  }
  const std::uint64_t most = parts_.state.schedule.spec().max_steps;
  if (most != 0 && position.step > most) {
    return Invalid(
        Format("has more steps than maxSteps ({}): use at least {}", most, position.step));
  }
  const Result<Schedule> schedule = parts_.state.schedule.With(position.batches);
  if (!schedule || position.tick > schedule->total_ticks() ||
      schedule->StepsBefore(position.tick) != position.step) {
    return Invalid("is of a job with other data or epochs");
  }
  if (schedule->last_change() > position.tick) {
    return Invalid("has a batch of an epoch that it has not reached");
  }
  return {};
}

void OpeningRun::Settle() {
  parts_.volume_retry.Reset();
  StateSummary own = opening_.own();
  own.current = true;
  opening_.SetOwn(own);
  SayWhatItHolds();
  parts_.moves.Then(SimpleMove::kAdvanceOpening);
}

}  // namespace pliant
