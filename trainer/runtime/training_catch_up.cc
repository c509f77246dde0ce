#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "trainer/checkpoint/state_slice.h"
#include "trainer/runtime/training.h"

// A member that does not hold the state of its membership catches up: it computes no shards, and
// nobody waits for it. The others send it their committed state as of the membership's beginning,
// each one slice. Of every tick it receives what all receive: the reduced gradient, the buffers,
// the trailers. When the state has arrived it applies the ticks since then, and reports that it is
// in sync. The others repeat that in their trailers, so that all know it after the same tick.

namespace pliant {

// ---- The others ----

std::vector<int> Training::StateSources() const {
  std::vector<int> sources;
  for (std::size_t rank = 0; rank < team_.in_sync.size(); ++rank) {
    if (team_.in_sync[rank]) sources.push_back(static_cast<int>(rank));
  }
  sources.resize(static_cast<std::size_t>(
      SlicesFor(state_bytes_, options_.state_slice_bytes, static_cast<int>(sources.size()))));
  return sources;
}

// The copy is made in parallel with the first forward pass.
void Training::ServeThoseBehind() {
  const std::vector<int> sources = StateSources();
  const auto own = std::ranges::find(sources, rank_);
  if (own == sources.end() || !std::ranges::contains(team_.in_sync, false)) return;
  const StateSlice slice{.index = static_cast<int>(own - sources.begin()),
                         .count = static_cast<int>(sources.size())};
  parts_.compute.CopyState(
      slice,
      parts_.tasks.Guard<Result<std::shared_ptr<const StateCopy>>>(lifetime_.Guard(
          [this, applied = applied()](const Result<std::shared_ptr<const StateCopy>>& state) {
            if (!state) return owner_.Fail(state.error());
            if (stage_ == Stage::kOver) return;
            for (std::size_t rank = 0; rank < team_.in_sync.size(); ++rank) {
              if (team_.in_sync[rank]) continue;
              parts_.states.Begin(static_cast<int>(rank),
                                  StateSender(membership_, applied, *state));
            }
          })));
}

Status Training::OnTrailerOfOneBehind(int rank, const Frame& frame) {
  ASSIGN_OR_RETURN(const Trailer trailer, DecodeTrailer(frame.payload.view));
  progress_.OnTrailer(rank, frame.header.tick, trailer.in_sync);
  return {};
}

// Ticks that a member has yet to apply occupy memory, here or there, so the others wait. They do
// not wait when somebody is about to leave: catch-up starts again then.
bool Training::MustWaitForThoseBehind() const {
  if (catch_up_ || owner_.OthersContinue() || !parts_.view.AllStay()) return false;
  return progress_.IsAnyFarBehind(team_.in_sync, applied());
}

// ---- The one that catches up ----

void Training::OnStateFrame(int rank, const Frame& frame) {
  if (!catch_up_ || !catch_up_->wants_state()) return;
  if (const Status status = catch_up_->OnState(rank, frame); !status) {
    return parts_.moves.Accuse(parts_.view.member(rank), status.error().message);
  }
  if ((frame.header.node & kLastOfBatch) != 0) parts_.peers.AskForMoreState(rank);
  catch_up_->LoadIfWhole();
}

void Training::OnStateLoaded(const Position& position) {
  parts_.state.own = position;
  parts_.state.RecordStopRequest(parts_.compute, position.applied_ticks);
  // The partial tick was needed until now: had the state not arrived, the next membership might
  // have begun with that tick.
  ticks_.ForgetPartial();
}

void Training::OnMissedTickApplied(const MissedTick& tick, const CommitOutput& output, bool last) {
  Position& own = parts_.state.own;
  NoiseWindow noise = own.noise;
  AddNoise(noise, tick.plan, tick.sums, tick.spread, output);
  if (parts_.ledger != nullptr && tick.plan.kind == TickKind::kTrain && !last) {
    parts_.ledger->Committed(membership_, own.applied_ticks);
  }
  own = tick.after;
  own.noise = noise;
  const bool changed = tick.plan.kind == TickKind::kTrain || tick.evaluation;
  if (changed) parts_.state.RecordStopRequest(parts_.compute, own.applied_ticks);
}

// A tick is complete; this member only stores it.
void Training::OnMissed(const TickOutcome& outcome) {
  const TickRunner& ticks = ticks_;
  MissedTick tick{.plan = ticks.plan(),
                  .gradient = {},
                  .buffers = ticks.buffers(),
                  .sums = outcome.sums,
                  .spread = outcome.spread,
                  .evaluation = EvaluationEndedBy(outcome),
                  .after = parts_.state.group};
  parts_.state.Advance(tick.after, tick.plan, outcome);
  if (tick.plan.kind == TickKind::kTrain) {
    // Copied, because the reduction uses its buffer again.
    const MeanGradient mean = ticks.mean();
    tick.gradient = FloatBuffer(mean.values.view().size());
    std::ranges::copy(mean.values.view(), tick.gradient.view().begin());
  }
  if (std::ranges::contains(outcome.came_in_sync, rank_)) {
    catch_up_->OnCompleted(std::move(tick), outcome);
    return AdvanceCatchUp();
  }
  NoteOutcome(outcome);
  parts_.state.AdvanceGroup(ticks.plan(), outcome);
  tick.after = parts_.state.group;
  catch_up_->OnCompleted(std::move(tick));
  team_.OnCommitted(ticks.plan().kind);
  Boundary(outcome);
}

void Training::AdvanceCatchUp() {
  if (!catch_up_) return;
  catch_up_->Advance();
  const bool nothing_more_comes = catch_up_->coming_in_sync() || stage_ == Stage::kFinishing;
  if (nothing_more_comes && catch_up_->up_to_date()) FinishCatchUp();
}

void Training::OnCatchUpStep() {
  if (catch_up_->ended()) {
    AbandonCatchUp();
    return parts_.moves.Then(SimpleMove::kEnterPutOff);
  }
  // The others knew when they committed it that this tick was the last.
  if (stage_ == Stage::kTicking && !committing() && parts_.state.at_the_end()) {
    return parts_.moves.Then(SimpleMove::kFinish);
  }
  AdvanceCatchUp();
  ReportCatchUp();
}

// Also when it has all ticks: the others may wait with the last one until it is not so far behind.
void Training::ReportCatchUp() {
  if (!catch_up_ || stage_ == Stage::kOver) return;
  const std::optional<CatchUp::Report> report = catch_up_->NextReport(applied());
  if (!report) return;
  // Stamped with the previous tick: none of the others is behind that, so nobody holds the frame as
  // an early one.
  Frame frame =
      parts_.peers.FrameOf(FrameKind::kTrailer, EncodeTrailer({.in_sync = report->in_sync}));
  frame.header.tick = applied() - std::min<Tick>(applied(), 1);
  parts_.peers.SendToAll(frame);
}

void Training::FinishCatchUp() {
  const bool has_last = catch_up_->last().has_value();
  const TickOutcome last = has_last ? *catch_up_->last() : TickOutcome();
  CHECK(parts_.state.own.applied_ticks == applied() + (has_last ? 1 : 0),
        "it has applied all ticks");
  catch_up_.reset();
  parts_.state.group.noise = parts_.state.own.noise;
  log::Info("in sync", {{"membership", ToString(membership_)}, {"tick", applied()}});
  if (has_last) return OnCommitted(last);
  ReportOpened();  // no tick is left
}

void Training::EndCatchUp() {
  if (!catch_up_) return;
  catch_up_->End();
  if (!catch_up_->busy()) AbandonCatchUp();
}

// The learner keeps its own state, as far as that has come.
void Training::AbandonCatchUp() {
  TrainingState& state = parts_.state;
  state.MoveTo(state.own);
  state.RecordStopRequest(parts_.compute, state.own.applied_ticks);
  catch_up_.reset();
}

}  // namespace pliant
