#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/runtime/learner_loop_impl.h"
#include "trainer/runtime/wire.h"

namespace pliant {
namespace {

constexpr Duration kFinalPoll = std::chrono::seconds(2);

}  // namespace

// ---- Ticks ----

void LearnerLoop::Impl::BeginTicking() {
  phase_ = Phase::kTicking;
  in_step_ = opening_->in_step();
  if (!in_step_[static_cast<std::size_t>(rank())]) BeginFollowing(*opening_->furthest());
  followed_to_.assign(in_step_.size(), applied_);
  said_in_step_.assign(in_step_.size(), false);
  map_ = RegularMap();
  learner_of_rank_ = LearnersOfRanks();
  learners_ = membership_.learners();
  redo_ = DealMissingShards(map_.logical_shards, opening_->finished(), in_step_);
  opening_.reset();
  missing_since_.clear();
  ReleaseLeavers();
  if (rank() == 0) TakeOverMetrics();
  bucket_choice_ = 0;
  // Alone nothing travels.
  bucket_tuner_ = BucketTuner(membership_.world_size() > 1 ? bucket_sizes_.size() : 1);
  ServeFollowers();
  if (following_) TellProgress();  // now: somebody may wait to leave
  if (!at_the_end()) return BeginTick();
  if (done()) ReportOpened();
  Finish();
}

ShardMap LearnerLoop::Impl::RegularMap() const {
  return AssignShardsAmong(split_.MapOf(members_in_step()).logical_shards, in_step_);
}

std::vector<int> LearnerLoop::Impl::LearnersOfRanks() const {
  std::vector<int> learners;
  for (const Member& member : membership_.members) {
    const auto first = std::ranges::find_if(
        membership_.members, [&](const Member& other) { return SameLearner(other.id, member.id); });
    learners.push_back(static_cast<int>(first - membership_.members.begin()));
  }
  return learners;
}

// Those who left are free when those who stayed, and held the state before, hold it again. Joiners
// do not know them.
void LearnerLoop::Impl::ReleaseLeavers() {
  const auto follows = [&](const Member& member) {
    const std::optional<int> rank = membership_.RankOf(member.id);
    return rank && !in_step_[static_cast<std::size_t>(*rank)];
  };
  if (std::ranges::any_of(before_, follows)) return;
  for (const Member& member : std::exchange(before_, {})) {
    if (!membership_.RankOf(member.id)) SendToPeer(member.id, FrameKind::kOpened);
  }
}

// The rank 0 before may have died before it wrote the line of the last tick, or after it wrote
// those of ticks that nobody else has.
void LearnerLoop::Impl::TakeOverMetrics() {
  parts_.metrics.CutFrom(last_line_.empty() ? applied_ : applied_ - 1);
  if (!last_line_.empty()) parts_.metrics.Append(applied_ - 1, last_line_);
}

void LearnerLoop::Impl::BeginTick() {
  tick_began_ = parts_.loop.Now();
  data_waited_ = {};
  plan_ = schedule_.At(applied_);
  const ProgramInfo& info = parts_.compute.info();
  const bool train = plan_.kind == TickKind::kTrain;
  const ShardMap& map = tick_map();
  round_.Begin(map, rank(), train && info.buffer_bytes > 0, in_step_);
  if (train) {
    reduction_.Begin({.membership = membership_.id,
                      .tick = applied_,
                      .map = &map,
                      .self = rank(),
                      .divisor = static_cast<float>(plan_.samples),
                      .buckets = bucket_sizes(),
                      .host_of_rank = &learner_of_rank_});
  }
  if (following_) {
    tick_computed_ = tick_began_;
    samples_computed_ = 0;
    shards_kept_ = 0;
    ApplyFollowed();
    TellFollowed();
    return DeliverHeld();
  }
  FillWork();
  if (train) {
    const std::vector<ShardBlock>& own = map.blocks_of_rank[static_cast<std::size_t>(rank())];
    for (const HeldNode& node : finished_nodes_) {
      const ShardBlock block = BlockOf(map.logical_shards, node.node);
      if (std::ranges::contains(own, block)) reduction_.AddLocal(node);
    }
  }
  computing_ = true;
  parts_.compute.RunTick(
      std::move(work_),
      [this](const NodePart& part) { reduction_.AddLocal(part.node, part.bucket); },
      [this](const Result<TickOutput>& output) {
        if (!output) return Fail(output.error());
        OnTickComputed(*output);
      });
  DeliverHeld();
}

// What this learner is to compute of the tick.
void LearnerLoop::Impl::FillWork() {
  const ShardMap& map = tick_map();
  const auto self = static_cast<std::size_t>(rank());
  const std::vector<int>& own = round_.shards_of(rank());
  asked_.clear();
  std::ranges::copy_if(own, std::back_inserter(asked_),
                       [this](int shard) { return !IsFinished(shard); });
  shards_kept_ = own.size() - asked_.size();
  work_.kind = plan_.kind;
  work_.logical_shards = map.logical_shards;
  work_.blocks = redo_ ? redo_->to_compute[self] : map.blocks_of_rank[self];
  work_.buckets = bucket_sizes();
  work_.tasks.resize(asked_.size());
  const int world_size = members_in_step();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    split_.PutTask(applied_, world_size, asked_[i], work_.tasks[i]);
  }
  // Who is alone has nobody to send to, nor to compare with.
  work_.parts_early = world_size > 1;
  const std::uint64_t check_every = world_size > 1 ? options_.check_state_every_steps : 0;
  work_.check_state = plan_.kind == TickKind::kTrain && check_every > 0 && plan_.step > 0 &&
                      plan_.step % check_every == 0;
  if (parts_.ledger == nullptr) return;
  tasks_.clear();
  for (const int shard : own) tasks_.push_back(split_.TaskOf(applied_, world_size, shard));
}

void LearnerLoop::Impl::OnTickComputed(const TickOutput& output) {
  CHECK(phase_ == Phase::kTicking, "a tick that was given up does not come back");
  tick_computed_ = parts_.loop.Now();
  computing_ = false;
  Keep(output);
  if (parts_.ledger != nullptr && plan_.kind == TickKind::kTrain) {
    parts_.ledger->Computed(membership_.id, applied_, tasks_);
  }
  FillTrailer(output);
  if (plan_.kind == TickKind::kTrain && parts_.compute.info().buffer_bytes > 0 &&
      round_.buffers_rank() == rank()) {
    SendToMembers(FrameKind::kBuffers, finished_buffers_);
  }
  WriteTrailer(trailer_, writer_);
  SendToMembers(FrameKind::kTrailer, writer_.Take());
  round_.OnLocal(trailer_, finished_buffers_);
  CommitWhenComplete();
}

void LearnerLoop::Impl::FillTrailer(const TickOutput& output) {
  trailer_.save = rank() == 0 && CheckpointDue(plan_);
  // Without a coordinator nobody arranges who goes on: if all leave, they save and go at once.
  trailer_.last_call = last_call_ || (leave_requested_ && !linked_);
  trailer_.announced = announcement_;
  trailer_.buckets_next = static_cast<std::uint32_t>(bucket_tuner_.Next());
  trailer_.state_checksum = output.state_checksum;
  trailer_.came_in_step.clear();
  for (std::size_t rank = 0; rank < in_step_.size(); ++rank) {
    if (said_in_step_[rank] && !in_step_[rank]) {
      trailer_.came_in_step.push_back(static_cast<int>(rank));
    }
  }
  trailer_.shards.clear();
  samples_computed_ = 0;
  for (const int shard : round_.shards_of(rank())) {
    CHECK(IsFinished(shard), "a computed tick has all of its shards");
    const ShardSums& sums = *finished_[static_cast<std::size_t>(shard)];
    trailer_.shards.push_back({.shard = shard, .sums = sums});
    samples_computed_ += sums.samples;
  }
}

void LearnerLoop::Impl::Keep(const TickOutput& output) {
  data_waited_ += output.data_wait;
  finished_.resize(static_cast<std::size_t>(map_.logical_shards));
  for (std::size_t i = 0; i < output.sums.size(); ++i) {
    finished_[static_cast<std::size_t>(asked_[i])] = output.sums[i];
    if (plan_.kind == TickKind::kEvaluate) {
      const ShardBlock shard{.first = asked_[i], .count = 1};
      finished_nodes_.push_back({.node = NodeOf(map_.logical_shards, shard), .sum = {}});
    }
  }
  std::ranges::copy(output.nodes, std::back_inserter(finished_nodes_));
  if (output.buffers.owner != nullptr) finished_buffers_ = output.buffers;
}

// Compute may use the buffers again.
void LearnerLoop::Impl::ForgetTick() {
  finished_.clear();
  finished_nodes_.clear();
  finished_buffers_ = {};
}

std::vector<NodeIndex> LearnerLoop::Impl::FinishedNodes() const {
  std::vector<NodeIndex> nodes;
  for (const HeldNode& node : finished_nodes_) nodes.push_back(node.node);
  return nodes;
}

void LearnerLoop::Impl::OnTickFrame(int rank, const Frame& frame) {
  const Status status = [&]() -> Status {
    switch (frame.header.kind) {
      case FrameKind::kTrailer: {
        RETURN_IF_ERROR(ReadTrailer(frame.payload.view, peer_trailer_));
        if (peer_trailer_.buckets_next >= bucket_sizes_.size()) {
          return Invalid("a trailer with unknown sizes of buckets");
        }
        return round_.OnTrailer(rank, peer_trailer_);
      }
      case FrameKind::kBuffers:
        return round_.OnBuffers(rank, frame.payload);
      default:
        if (plan_.kind != TickKind::kTrain) return Invalid("a gradient in an evaluation");
        return reduction_.OnFrame(rank, frame);
    }
  }();
  if (!status) return StopOnViolation(member(rank), status.error().message);
  CommitWhenComplete();
}

void LearnerLoop::Impl::CommitWhenComplete() {
  if (committing_ || !round_.done()) return;
  if (plan_.kind == TickKind::kTrain && !reduction_.done()) return;
  const TickOutcome outcome = round_.Outcome();
  // All switch at the same tick; who follows begins anew there.
  if (!outcome.announced && FollowersAreFarBehind()) return;
  tick_complete_ = parts_.loop.Now();
  if (following_) return Follow(outcome);
  if (!outcome.differing.empty() && DiffersFromOthers(outcome.differing)) return;
  const std::optional<EvaluationTask> evaluated = EvaluationEndedBy(outcome);
  if (plan_.kind == TickKind::kEvaluate && !evaluated) return OnCommitted(outcome);
  committing_ = true;
  outcome_ = outcome;
  const auto done = [this](const Status& status) {
    committing_ = false;
    if (!status) return Fail(status.error());
    NoteWish(applied_ + 1);
    const TickOutcome committed = std::move(outcome_);
    OnCommitted(committed);
  };
  if (evaluated) return parts_.compute.Evaluated(*evaluated, done);
  parts_.compute.Commit({.epoch = plan_.epoch,
                         .step = plan_.step,
                         .gradient = reduction_.root(),
                         .buffers = round_.buffers(),
                         .sums = outcome.sums},
                        done);
}

std::optional<EvaluationTask> LearnerLoop::Impl::EvaluationEndedBy(
    const TickOutcome& outcome) const {
  if (plan_.kind != TickKind::kEvaluate || !plan_.last_of_kind) return std::nullopt;
  if (!parts_.compute.info().hears_evaluations) return std::nullopt;
  return EvaluationTask{
      .epoch = plan_.epoch, .step = plan_.step, .sums = metrics_.evaluation() + outcome.sums};
}

void LearnerLoop::Impl::NoteWish(Tick ticks) {
  ended_at_ = parts_.compute.wants_end() ? std::optional(ticks) : std::nullopt;
}

// All find the same. Who differs goes, for good: it would spoil every step from here on, and may
// have spoiled those since the states were compared last.
bool LearnerLoop::Impl::DiffersFromOthers(const std::vector<int>& differing) {
  for (const int rank : differing) {
    log::Error("a learner's state differs",
               {{"learner", member(rank).name},
                {"step", plan_.step},
                {"comparedEverySteps", options_.check_state_every_steps}});
  }
  if (!std::ranges::contains(differing, rank())) return false;
  Fail({ErrorCode::kCorrupt,
        Format("its state at step {} is not that of the other learners: a program whose results "
               "depend on more than its input, or a machine that computes or remembers wrongly",
               plan_.step)});
  return true;
}

// From here on nothing can void the tick: it is the same on whoever commits it.
void LearnerLoop::Impl::OnCommitted(const TickOutcome& outcome) {
  const TimePoint now = parts_.loop.Now();
  CountTick(now);
  TuneBuckets(now);
  bucket_choice_ = outcome.buckets_next;
  if (parts_.ledger != nullptr && plan_.kind == TickKind::kTrain) {
    parts_.ledger->Committed(membership_.id, applied_);
  }
  NoteOutcome(outcome);
  ++applied_;
  if (!split_.bitwise()) lineage_ = membership_.id;
  ForgetTick();
  redo_.reset();
  if (!opened_reported_) {
    pause_seconds_ = last_commit_ ? ToSeconds(now - *last_commit_) : 0;
    if (last_commit_) figures_.pausing += now - *last_commit_;
    ReportOpened();
  }
  applied_most_ = std::max(applied_most_, applied_);
  last_commit_ = now;
  Boundary(outcome);
}

void LearnerLoop::Impl::NoteOutcome(const TickOutcome& outcome) {
  const TimePoint now = parts_.loop.Now();
  TickPlan plan = plan_;
  plan.last_of_kind |= applied_ + 1 == ended_at_;
  last_line_ = metrics_
                   .OnCommit({.tick = applied_,
                              .plan = plan,
                              .sums = outcome.sums,
                              .learners = learners_,
                              .membership = membership_.id,
                              .now = now,
                              .unix_seconds = Unix(now)})
                   .value_or("");
  if (!last_line_.empty() && rank() == 0) {
    parts_.metrics.Append(applied_, last_line_);
    if (plan_.kind == TickKind::kEvaluate) {
      log::Info("epoch done", {{"epoch", plan_.epoch},
                               {"step", plan_.step},
                               {"accuracy", metrics_.accuracy().value_or(0)},
                               {"learners", membership_.learners()}});
    }
  }
}

void LearnerLoop::Impl::CountTick(TimePoint now) {
  figures_.computing += tick_computed_ - tick_began_;
  figures_.data_waiting += data_waited_;
  figures_.waiting += tick_complete_ - tick_computed_;
  figures_.committing += now - tick_complete_;
  ++figures_.ticks;
  figures_.shards += round_.shards_of(rank()).size();
  figures_.shards_kept += shards_kept_;
  if (plan_.kind != TickKind::kTrain) return;
  ++figures_.steps;
  figures_.samples += static_cast<std::uint64_t>(samples_computed_);
}

void LearnerLoop::Impl::TuneBuckets(TimePoint now) {
  if (rank() != 0 || plan_.kind != TickKind::kTrain) return;
  const bool whole = plan_.samples == schedule_.spec().global_batch_size;
  if (!bucket_tuner_.OnTick(bucket_choice_, now - tick_began_, whole)) return;
  const BucketSizes& chosen = bucket_sizes_[bucket_tuner_.Next()];
  log::Info("bucket sizes chosen", {{"membership", ToString(membership_.id)},
                                    {"firstKib", chosen.first * sizeof(float) / 1024},
                                    {"restKib", chosen.rest * sizeof(float) / 1024}});
}

void LearnerLoop::Impl::ReportOpened() {
  const Tick began = done() ? applied_ : applied_ - 1;
  opened_reported_ = true;
  Tell(Opened{.membership = membership_.id,
              .applied_ticks = applied_,
              .pause_seconds = pause_seconds_,
              .ticks_lost = applied_most_ - std::min(applied_most_, began)});
}

// Between two ticks: all who get here know the same.
void LearnerLoop::Impl::Boundary(const TickOutcome& outcome) {
  if (!outcome.came_in_step.empty()) {
    for (const int rank : outcome.came_in_step) in_step_[static_cast<std::size_t>(rank)] = true;
    map_ = RegularMap();
    ReleaseLeavers();
  }
  if (pending_) return Enter(*std::exchange(pending_, std::nullopt));
  if (at_the_end()) return Finish();
  if (outcome.save) SaveCheckpoint(Slices(), [](bool) {});
  if (outcome.announced && outcome.announced->id > membership_.id) {
    return SwitchTo(*outcome.announced);
  }
  if (outcome.last_call) return Drain();
  if (loss_in_commit_) return Stop(*std::exchange(loss_in_commit_, std::nullopt));
  BeginTick();
}

// ---- The end ----

void LearnerLoop::Impl::Finish() {
  phase_ = Phase::kFinishing;
  log::Info("all steps done", {{"step", step()}});
  if (rank() == 0) {
    // How many steps there are may be news.
    if (ended_at_) TellProgress();
    return PublishFinal();
  }
  PollFinal();
  if (loss_in_commit_) OnLoss(*std::exchange(loss_in_commit_, std::nullopt));
  if (following_) ApplyFollowed();
  DeliverHeldSoon();
}

void LearnerLoop::Impl::PublishFinal() {
  if (exporting_ || phase_ != Phase::kFinishing) return;
  exporting_ = true;
  // An earlier rank 0 may have done it, and died before it said so.
  parts_.checkpointer.FindFinal(Guarded<Result<Manifest>>([this](Result<Manifest> final) {
    if (final) return Complete(final->parameters_sha256);
    parts_.compute.CopyState({},
                             Guarded<Result<std::shared_ptr<const StateCopy>>>(
                                 [this](Result<std::shared_ptr<const StateCopy>> state) {
                                   if (!state) return RetryPublishing(state.error());
                                   parts_.checkpointer.ExportFinal(
                                       Label(), *std::move(state),
                                       Guarded<Result<Manifest>>([this](Result<Manifest> manifest) {
                                         if (!manifest) return RetryPublishing(manifest.error());
                                         Complete(manifest->parameters_sha256);
                                       }));
                                 }));
  }));
}

void LearnerLoop::Impl::RetryPublishing(const Error& error) {
  exporting_ = false;
  log::Warning("cannot publish the final model", {{"cause", error.message}});
  NoteWriteError(error);
  After(final_backoff_.Next(0.5), [this] { PublishFinal(); });
}

// The final model, not the word of rank 0, is what completes the job.
void LearnerLoop::Impl::PollFinal() {
  if (std::exchange(polling_, true)) return;
  After(kFinalPoll, [this] {
    parts_.checkpointer.FindFinal(Guarded<Result<Manifest>>([this](Result<Manifest> final) {
      polling_ = false;
      if (final) return Complete(final->parameters_sha256);
      if (at_the_end()) PollFinal();
    }));
  });
}

void LearnerLoop::Impl::Complete(const std::string& parameters_sha256) {
  if (phase_ == Phase::kFinishing && rank() == 0) {
    WireWriter writer;
    for (const char c : parameters_sha256) writer.Put(c);
    SendToMembers(FrameKind::kFinished, writer.Take());
  }
  Exit({.reason = LeftReason::kCompleted,
        .message = "all steps done",
        .parameters_sha256 = parameters_sha256});
}

}  // namespace pliant
