#include "trainer/runtime/training.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/checkpoint/state_slice.h"

namespace pliant {

namespace {

constexpr std::size_t kMaxShownSamples = 60;  // characters

// A state that the program computes for itself differs by its own fault, on any machine.
Error ErrorOf(const StateMismatch& mismatch, std::uint64_t step) {
  if (!mismatch.of_program) {
    return {ErrorCode::kCorrupt,
            Format("its state at step {} differs from that of the other learners in {}: the "
                   "program's results depend on more than its input, or its machine has a faulty "
                   "CPU, GPU or memory",
                   step, mismatch.name)};
  }
  const std::string values = mismatch.own.empty()
                                 ? std::string()
                                 : Format(" ({} here, {} there)", mismatch.own, mismatch.other);
  return {ErrorCode::kInvalid,
          Format("its state at step {} differs from that of the other learners in {}{}: the "
                 "program sets it from something that learners do not share, such as a variable "
                 "of the loop, a count of this learner's own batches, or a schedule that is not "
                 "registered. Register what lasts over steps (elastic.register), and change it "
                 "only between a commit and the next step, from values that are equal on all "
                 "learners (step.number, step.loss, step.accuracy, registered state)",
                 step, mismatch.name, values)};
}

std::size_t BytesOf(const StateDict& state) {
  std::size_t bytes = 0;
  for (const TensorView& tensor : state) bytes += tensor.bytes.size();
  return bytes;
}

// A member that does not hold the furthest state takes part in the ticks that follow it.
Team BeginTeam(const LearnerContext& parts, const Opening& opening) {
  const Position furthest = opening.furthest()->position;
  const std::vector<bool> in_sync = opening.in_sync();
  if (!in_sync[static_cast<std::size_t>(parts.view.rank())]) parts.state.MoveGroupTo(furthest);
  return MakeTeam(parts.view.current(), in_sync, opening.finished(), parts.split,
                  furthest.applied_ticks);
}

}  // namespace

Training::Training(Options options, const LearnerContext& parts, TickRunner& ticks,
                   Carrier& carrier, Owner& owner, const Opening& opening)
    : options_(options),
      parts_(parts),
      ticks_(ticks),
      carrier_(carrier),
      owner_(owner),
      state_bytes_(BytesOf(parts.compute.state_shape())),
      membership_(parts.view.current().id),
      rank_(parts.view.rank()),
      team_(BeginTeam(parts, opening)),
      // All begin at the furthest position.
      progress_(team_.in_sync.size(), opening.furthest()->position.applied_ticks,
                options.max_backlog) {
  TrainingState& state = parts_.state;
  if (!team_.IsInSync(rank_)) {
    state.ended_at.reset();  // its own stop request does not apply to their state
    catch_up_.emplace(
        CatchUp::Parts{.tasks = parts_.tasks, .compute = parts_.compute, .owner = *this},
        state.group, StateSources(), options_.max_backlog);
  }
}

Training::~Training() {
  const bool busy = ticks_.busy() || (catch_up_ && catch_up_->busy());
  CHECK(!busy || parts_.tasks.ended(), "it is destroyed only after the program's call has ended");
  carrier_.Leave();
}

void Training::Begin() {
  carrier_.Enter(rank_, parts_.view.current().world_size());
  ReleaseLeavers();
  if (rank_ == 0) TakeOverMetrics();
  ServeThoseBehind();
}

// Leavers may exit once all remaining members that held the state before hold it again. Joiners do
// not know the leavers.
void Training::ReleaseLeavers() {
  for (const Member& leaver : parts_.view.TakeLeavers(team_.in_sync)) {
    parts_.peers.Send(leaver.id, parts_.peers.FrameOf(FrameKind::kOpened));
  }
}

// The previous rank 0 may have died before it wrote the line of the last tick, or after it wrote
// lines of ticks that no other member has.
void Training::TakeOverMetrics() {
  const std::string& last_line = parts_.state.group.last_line;
  parts_.metrics.CutFrom(last_line.empty() ? applied() : applied() - 1);
  if (!last_line.empty()) parts_.metrics.Append(applied() - 1, last_line);
}

void Training::Leave() {
  stage_ = Stage::kOver;
  carrier_.Leave();
  opened_reported_ = false;
  EndCatchUp();
}

// ---- Ticks ----

void Training::BeginTick() {
  team_.BeginTick(parts_.split, applied());
  const TickPlan plan = parts_.state.schedule.At(applied());
  const GradientExchanges::Step step{
      .membership = membership_, .tick = applied(), .self = rank_, .samples = plan.samples};
  ticks_.Begin({.membership = membership_,
                .number = applied(),
                .plan = plan,
                .before = &parts_.state.own,
                .self = rank_,
                .team = &team_,
                .exchange = plan.kind == TickKind::kTrain ? &carrier_.Begin(team_, step) : nullptr,
                .owner = this});
  if (catch_up_) {
    AdvanceCatchUp();
    ReportCatchUp();
  } else {
    ticks_.ComputePart();
  }
  parts_.moves.Then(SimpleMove::kTakeEarlyFrames);
}

Trailer Training::MakeTrailer() {
  Trailer trailer = owner_.TrailerHead(ticks_.plan());
  trailer.came_in_sync = progress_.NewlyInSync(team_.in_sync);
  trailer.rounds = carrier_.Report();
  return trailer;
}

void Training::OnTickFrame(int rank, const Frame& frame) {
  const bool of_one_behind = !team_.IsInSync(rank) && frame.header.kind == FrameKind::kTrailer;
  if (!of_one_behind && frame.header.tick != applied()) return;
  const Status taken =
      of_one_behind ? OnTrailerOfOneBehind(rank, frame) : ticks_.OnFrame(rank, frame);
  if (!taken) return parts_.moves.Accuse(parts_.view.member(rank), taken.error().message);
  parts_.moves.Then(SimpleMove::kCommit);
}

void Training::CommitWhenComplete() {
  TickRunner& ticks = ticks_;
  if (stage_ != Stage::kTicking || committing() || !ticks.complete()) return;
  const TickOutcome outcome = ticks.Outcome();
  // All switch at the same tick; a member that catches up starts again there.
  if (!outcome.announced && MustWaitForThoseBehind()) return;
  ticks.NoteComplete();
  if (RefusesSums(outcome)) return;
  if (catch_up_) return OnMissed(outcome);
  if (!outcome.differing.empty() && DiffersFromOthers(outcome.differing)) return;
  // Shards of states that differ are unequal, which says nothing of the data.
  if (outcome.unequal && outcome.differing.empty()) return FailForShard(*outcome.unequal);
  const std::optional<EvaluationTask> evaluation = EvaluationEndedBy(outcome);
  if (ticks.plan().kind == TickKind::kEvaluate && !evaluation) return OnCommitted(outcome);
  ticks.Commit(outcome, evaluation, [this, outcome](const Result<CommitOutput>& output) {
    if (!output) return owner_.Fail(output.error());
    AddNoise(parts_.state.group.noise, ticks_.plan(), outcome.sums, outcome.spread, *output);
    parts_.state.RecordStopRequest(parts_.compute, applied() + 1);
    ProgramWishes wishes = parts_.compute.wishes();
    parts_.state.checkpoint_wished |= wishes.checkpoint;
    parts_.state.best = std::move(wishes.best);
    OnCommitted(outcome);
  });
}

std::optional<EvaluationTask> Training::EvaluationEndedBy(const TickOutcome& outcome) const {
  const TickPlan& plan = ticks_.plan();
  if (plan.kind != TickKind::kEvaluate || !plan.last_of_kind) return std::nullopt;
  if (!parts_.compute.info().wants_evaluation_results) return std::nullopt;
  return EvaluationTask{.epoch = plan.epoch,
                        .step = plan.step,
                        .sums = parts_.state.metrics.evaluation() + outcome.sums,
                        .first = rank_ == 0};
}

// All members fail alike. One program reports them, so it is at fault, not a learner.
bool Training::RefusesSums(const TickOutcome& outcome) {
  ShardSums total = outcome.sums;
  bool mixed = outcome.mixes_weights;
  const TickPlan& plan = ticks_.plan();
  if (plan.kind == TickKind::kEvaluate) {
    const ShardSums& before = parts_.state.metrics.evaluation();
    mixed |= MixesWeights(std::array{before, total});
    total = before + total;
  }
  if (mixed) {
    owner_.Fail({ErrorCode::kInvalid,
                 Format("some batches of step {} have a weight and others have none: give each "
                        "batch a weight, or none, in training and in evaluate",
                        plan.step)});
    return true;
  }
  if (total.named.size() <= kMaxNamedSums) return false;
  owner_.Fail({ErrorCode::kInvalid,
               Format("the program reports {} named sums in step {}: at most {} are possible, over "
                      "all of its shards together",
                      total.named.size(), plan.step, kMaxNamedSums)});
  return true;
}

// Every member comes to the same verdict. One that differs fails permanently: it would corrupt all
// further steps, and may have corrupted those since the states were last compared.
bool Training::DiffersFromOthers(const std::vector<int>& differing) {
  const std::uint64_t step = ticks_.plan().step;
  for (const int rank : differing) {
    log::Error("a learner's state differs",
               {{"learner", parts_.view.member(rank).name},
                {"step", step},
                {"in", ticks_.MismatchOf(rank).name},
                {"comparedEverySteps", ticks_.check_state_every_steps()}});
  }
  if (!std::ranges::contains(differing, rank_)) return false;
  owner_.Fail(ErrorOf(ticks_.MismatchOf(rank_), step));
  return true;
}

// All members fail: nobody knows which of the two results is right, and a program whose results
// depend on the process has no right one.
void Training::FailForShard(const SpotCheck& unequal) {
  const int computing = team_.members_in_sync();
  std::string samples;
  const ShardTask task = parts_.split.TaskOf(applied(), computing, unequal.shard);
  for (const std::uint64_t sample : task.samples) {
    if (samples.size() > kMaxShownSamples) {
      samples += ", ...";
      break;
    }
    samples += Format("{}{}", samples.empty() ? "" : ", ", sample);
  }
  owner_.Fail(
      {ErrorCode::kInvalid,
       Format("shard {} of step {} (samples {}) has another result on {} than on {}: its data or "
              "its random numbers depend on the process that computes it, or a machine has a "
              "faulty CPU or memory. A sample may depend on its number and the epoch only; random "
              "numbers must come from the generators that are seeded for each shard and sample, or "
              "from the shard's seed",
              unequal.shard, task.step, samples, parts_.view.member(unequal.owner).name,
              parts_.view.member(unequal.checker).name)});
}

// The tick is final: all members commit identical results.
void Training::OnCommitted(const TickOutcome& outcome) {
  TrainingState& state = parts_.state;
  const TimePoint now = parts_.tasks.Now();
  ticks_.CountInto(parts_.stats);
  if (parts_.ledger != nullptr && ticks_.plan().kind == TickKind::kTrain) {
    parts_.ledger->Committed(membership_, applied());
  }
  NoteOutcome(outcome);
  state.AdvanceGroup(ticks_.plan(), outcome);
  state.own = state.group;
  ticks_.ForgetPartial();
  team_.OnCommitted(ticks_.plan().kind);
  if (!opened_reported_) {
    pause_seconds_ = state.last_commit ? ToSeconds(now - *state.last_commit) : 0;
    if (state.last_commit) parts_.stats.pausing += now - *state.last_commit;
    ReportOpened();
  }
  state.max_applied = std::max(state.max_applied, applied());
  state.last_commit = now;
  Boundary(outcome);
}

void Training::NoteOutcome(const TickOutcome& outcome) {
  TrainingState& state = parts_.state;
  const TimePoint now = parts_.tasks.Now();
  TickPlan plan = ticks_.plan();
  plan.last_of_kind |= applied() + 1 == state.ended_at;
  // The line before an evaluation, or before the end, covers all steps up to it.
  if (plan.kind == TickKind::kTrain) plan.last_of_kind |= state.schedule.PausesAfter(applied());
  state.group.last_line = state.metrics
                              .OnCommit({.tick = applied(),
                                         .plan = plan,
                                         .sums = outcome.sums,
                                         .total_steps = state.schedule.total_steps(),
                                         .batch_size = state.schedule.BatchAt(applied()),
                                         .learners = team_.learners,
                                         .membership = membership_,
                                         .now = now,
                                         .unix_seconds = ToSeconds(now.time_since_epoch()) +
                                                         options_.unix_offset_seconds})
                              .value_or("");
  state.group.evaluation = state.metrics.evaluation();
  if (!parts_.split.bitwise()) state.group.lineage = membership_;
  if (state.group.last_line.empty() || rank_ != 0) return;
  parts_.metrics.Append(applied(), state.group.last_line);
  if (plan.kind != TickKind::kEvaluate) return;
  const bool of_epoch = state.schedule.spec().evaluate_every == 0;
  log::Info(of_epoch ? "epoch done" : "evaluation done",
            {{"epoch", plan.epoch},
             {"step", plan.step},
             {"accuracy", state.metrics.accuracy().value_or(0)},
             {"learners", team_.learners}});
}

void Training::Boundary(const TickOutcome& outcome) {
  if (!outcome.came_in_sync.empty()) {
    team_.OnCameInSync(outcome.came_in_sync, parts_.split, applied());
    ReleaseLeavers();
  }
  if (!catch_up_) carrier_.OnTick(outcome.rounds, !std::ranges::contains(team_.in_sync, false));
  owner_.OnBoundary(outcome);
}

int Training::CheckpointSlices(std::size_t slice_bytes) const {
  const auto first_behind = std::ranges::find(team_.in_sync, false);
  return SlicesFor(state_bytes_, slice_bytes,
                   static_cast<int>(first_behind - team_.in_sync.begin()));
}

std::optional<Opened> Training::opened() const {
  if (!opened_reported_) return std::nullopt;
  return Opened{
      .membership = membership_, .applied_ticks = applied(), .pause_seconds = pause_seconds_};
}

void Training::ReportOpened() {
  const Tick began = parts_.state.done() ? applied() : applied() - 1;
  const Tick max_applied = parts_.state.max_applied;
  opened_reported_ = true;
  parts_.session.Send(Opened{.membership = membership_,
                             .applied_ticks = applied(),
                             .pause_seconds = pause_seconds_,
                             .ticks_lost = max_applied - std::min(max_applied, began)});
}

}  // namespace pliant
