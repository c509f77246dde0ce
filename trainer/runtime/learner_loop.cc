#include "trainer/runtime/learner_loop.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "base/overloaded.h"

namespace pliant {
namespace {

std::uint64_t CountOf(const LearnerParts& parts) { return parts.compute.info().gradient_elements; }

// Something will not return: nobody waits for it.
LearnerExit ExitOfHang(std::string hang) {
  log::Error("the program hangs", {{"cause", hang}});
  return {.reason = LeftReason::kFailed,
          .code = ErrorCode::kTimeout,
          .message = std::move(hang),
          .parameters_sha256 = "",
          .program_hangs = true};
}

}  // namespace

LearnerLoop::LearnerLoop(LearnerOptions options, Schedule schedule, LearnerParts parts,
                         std::function<void(LearnerExit)> on_exit)
    : options_(std::move(options)),
      state_(std::move(schedule)),
      split_(state_.schedule, options_.reproducibility),
      parts_(parts),
      on_exit_(std::move(on_exit)),
      hang_watch_(options_.step_timeout, tasks_, parts.compute,
                  [this](std::string hang) { Exit(ExitOfHang(std::move(hang))); }),
      early_(
          LimitsFor({.gradient_bytes = CountOf(parts) * sizeof(float),
                     .buffer_bytes = parts.compute.info().buffer_bytes,
                     .logical_shards = static_cast<std::size_t>(MostShards(state_.schedule.spec())),
                     .ticks_ahead = MaxBacklog(options_.backlog_bytes, CountOf(parts)),
                     .state_batch_bytes = options_.state_batch_bytes})),
      states_(options_.state_batch_bytes,
              [this](int rank, Frame frame) { peers_.SendTo(rank, std::move(frame)); }),
      checkpoints_({.every_steps = options_.checkpoint_every_steps,
                    .every = options_.checkpoint_every,
                    .at = options_.checkpoint_at},
                   options_.checkpoints_kept, options_.unix_offset_seconds,
                   {.tasks = tasks_,
                    .compute = parts.compute,
                    .checkpointer = parts.checkpointer,
                    .stats = stats_},
                   [this](const CheckpointSave& save, const Error& error) {
                     peers_.Send(save.rank_zero,
                                 EncodeSliceFailure(view_.current().id,
                                                    {.tick = save.tick, .error = error}));
                   }),
      final_model_(
          {.tasks = tasks_, .compute = parts.compute, .checkpointer = parts.checkpointer},
          {.found = [this](const Manifest& model) { Complete(model.parameters_sha256); },
           .wanted = [this] { return state_.at_the_end(); },
           .not_published = [this](const Error& error) { checkpoints_.NoteWriteError(error); },
           .try_again = [this] { moves_.Then(SimpleMove::kPublish); }}),
      ticks_(options_.check_state_every_steps,
             {.tasks = tasks_,
              .compute = parts.compute,
              .ledger = parts.ledger,
              .split = split_,
              .peers = peers_,
              .aborted = [this] { moves_.Then(SimpleMove::kEnterPutOff); }}),
      exchanges_(
          {.elements = CountOf(parts),
           .on_device = parts.compute.keeps_means(),
           .all_reduce = !split_.bitwise(),
           .buckets = options_.buckets,
           .buckets_of_rounds = options_.buckets_of_rounds},
          [this](int rank, Frame frame) { peers_.SendTo(rank, std::move(frame)); },
          parts.gradients),
      carrier_(!split_.bitwise(),
               {.loop = parts.loop,
                .tasks = tasks_,
                .communicators = parts.compute.communicators(),
                .exchanges = exchanges_,
                .peers = peers_,
                .stats = stats_,
                .on_failed =
                    [this](const std::string& why) {
                      moves_.Then(StopMove{{.accused = {}, .cause = why}});
                    },
                .on_hang = [this](std::string why) { Exit(ExitOfHang(std::move(why))); }}) {
  CHECK((parts.link == nullptr) == (parts.transport == nullptr), "peers come with a coordinator");
}

void LearnerLoop::Start() {
  if (parts_.transport != nullptr) parts_.transport->SetHandler(this);
  hang_watch_.Start();
  FindFinalThenStart();
}

// A learner that starts after the end of the job has nothing to do.
void LearnerLoop::FindFinalThenStart() {
  parts_.checkpointer.FindFinal(tasks_.Guard<Result<Manifest>>([this](Result<Manifest> final) {
    if (final) {
      const Status same = CheckBase(*final, parts_.compute.info().base);
      if (!same) return Fail(same.error());
      state_.own.applied_ticks = final->position.tick;
      final_step_ = final->position.step;
      return Complete(final->parameters_sha256);
    }
    const ErrorCode code = final.error().code;
    if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) {
      if (!volume_retry_.OnFailed()) return Fail(InContext("checkpoint volume", final.error()));
      log::Warning("checkpoint volume cannot be read", {{"cause", final.error().message}});
      return tasks_.After(VolumeRetry::kPause, [this] { FindFinalThenStart(); });
    }
    volume_retry_.Reset();
    phase_ = Phase::kIdle;
    if (parts_.link == nullptr) {
      // Alone: a permanent membership of one.
      moves_.Then(EnterMove{
          {.id = {.term = 0, .counter = 1}, .members = {{.id = options_.self, .address = ""}}}});
    } else if (leaving_) {
      LeaveWhenFree();
    } else {
      session_.Start();
    }
  }));
}

// ---- The coordinator ----

std::vector<LearnerMessage> LearnerLoop::Greeting() {
  // The others may fail to open the newest membership, or to write a checkpoint.
  const bool may_be_needed = phase_ == Phase::kReleased || phase_ == Phase::kDraining ||
                             (phase_ == Phase::kStopped && lost_);
  const bool is_newest = view_.newest() && view_.newest()->id == view_.current().id;
  const auto before = may_be_needed && !is_newest ? std::optional(view_.current()) : std::nullopt;
  std::vector<LearnerMessage> greeting = {Hello{.learner = options_.self,
                                                .ranks = options_.ranks,
                                                .address = parts_.transport->address(),
                                                .fingerprint = options_.fingerprint,
                                                .membership = view_.newest(),
                                                .before = before,
                                                .applied_ticks = state_.own.applied_ticks,
                                                .has_state = state_.own.has_state,
                                                .leaving = leaving_.has_value(),
                                                .done = done()}};
  if (leaving_) {
    greeting.push_back(
        Leaving{ToSeconds(std::max(leaving_->gone_by - tasks_.Now(), Duration::zero()))});
  }
  if (training_) {
    if (const std::optional<Opened> opened = training_->opened()) greeting.push_back(*opened);
  }
  if (lost_) greeting.push_back(*lost_);
  if (view_.proposal() && view_.proposal()->prepared) {
    greeting.push_back(Prepared{view_.proposal()->membership.id});
  }
  return greeting;
}

void LearnerLoop::Obey(const CoordinatorMessage& message) {
  std::visit(
      Overloaded{[](const Welcome& /*welcome*/) {},  // handled by the session
                 [&](const Refused& refused) {
                   Exit({.reason = LeftReason::kFailed,
                         .code = ErrorCode::kDenied,
                         .message = Format("refused by the coordinator: {}: {}", refused.reason,
                                           refused.message)});
                 },
                 [&](const Prepare& prepare) { Propose(prepare.membership, prepare.replaces); },
                 [&](const Announce& announce) {
                   if (!view_.IsNews(announce.membership.id)) return;
                   if (!announce.replaces) return moves_.Then(EnterMove{announce.membership});
                   if (view_.current().id == *announce.replaces && IsMember(phase_)) {
                     view_.SetAnnouncement(announce.membership);
                   }
                 },
                 [&](const Withdraw& withdraw) {
                   if (view_.Withdraw(withdraw.membership)) peers_.DropUnneeded();
                 },
                 [&](const Recover& recover) {
                   if (!recover.membership.RankOf(options_.self)) return;
                   moves_.Then(EnterMove{recover.membership});
                 },
                 [&](const Leave& leave) {
                   const bool is_needed = IsMember(phase_) || phase_ == Phase::kDraining;
                   if (leave.at_once && !is_needed) return LeaveUnlessFinal();
                   RequestLeave(options_.grace);
                 }},
      message);
}

Progress LearnerLoop::MakeProgress() {
  Progress progress{.tick = state_.own.applied_ticks,
                    .step = state_.step(),
                    .following = catching_up(),
                    .times = MeanTimes(reported_, stats_)};
  reported_ = stats_;
  if (IsMember(phase_) || phase_ == Phase::kFinishing) progress.membership = view_.current().id;
  if (progress.membership && view_.rank() == 0) {
    const Tick tick = std::min<Tick>(state_.applied(), state_.schedule.total_ticks() - 1);
    progress.stats = Progress::Stats{
        .epoch = state_.schedule.At(tick).epoch,
        .total_steps = state_.at_the_end() ? state_.step() : state_.schedule.total_steps(),
        .samples = state_.schedule.SamplesBefore(state_.applied()),
        .loss = state_.metrics.loss(),
        .samples_per_second = state_.metrics.samples_per_second(),
        .noise_scale = state_.group.noise.scale(),
        .batch_size = state_.schedule.BatchAt(tick),
        .evaluations = state_.metrics.evaluations(),
        .last_checkpoint = checkpoints_.report()};
    if (learners_asked_ > 0) progress.stats->learners_asked = learners_asked_;
  }
  return progress;
}

LearnerStats LearnerLoop::stats() const {
  LearnerStats stats = stats_;
  stats.member = IsMember(phase_);
  return stats;
}

// ---- What follows ----

void LearnerLoop::CarryOut() {
  if (!moves_.empty()) {  // usually it is: making a deque allocates memory
    std::deque<Move> moves;
    // Moves that a move causes come before the other ones.
    for (moves_.PutBefore(moves); !moves.empty() && phase_ != Phase::kExited;
         moves_.PutBefore(moves)) {
      Move move = std::move(moves.front());
      moves.pop_front();
      std::visit(Overloaded{[&](SimpleMove named) { Do(named); },
                            [&](EnterMove& enter) {
                              Enter(std::move(enter.membership), std::move(enter.before));
                            },
                            [&](SwitchMove& next) { SwitchTo(next.membership); },
                            [&](LossMove& lost) { OnLoss(std::move(lost.loss)); },
                            [&](StopMove& stop) { Stop(std::move(stop.loss)); },
                            [&](FrameMove& early) { Take(*early.peer, std::move(early.frame)); }},
                 move);
    }
  }
  CheckInvariants();
}

// Checks the rules of docs/decisions/membership-change.md.
void LearnerLoop::CheckInvariants() const {
  const bool committing = training_ && training_->committing();
  const char* const broken =
      BrokenRule({.phase = phase_,
                  .opens = opening_.has_value(),
                  .stage = training_ ? std::optional(training_->stage()) : std::nullopt,
                  .in_carrier = carrier_.entered(),
                  .lost = lost_.has_value(),
                  .changing = loading_ || committing || ticks_.aborting() || catching_up(),
                  .committing = committing,
                  .entry_put_off = view_.entry_put_off(),
                  .loss_put_off = view_.loss_put_off()});
  CHECK(broken == nullptr, broken);
}

void LearnerLoop::Do(SimpleMove move) {
  switch (move) {
    case SimpleMove::kAdvanceOpening:
      if (opening_ && !loading_) opening_->Advance();
      return;
    case SimpleMove::kBeginTraining:
      return BeginTraining();
    case SimpleMove::kBeginTick:
      return training_->BeginTick();
    case SimpleMove::kCommit:
      if (training_) training_->CommitWhenComplete();
      return;
    case SimpleMove::kAdvanceCatchUp:
      return training_->AdvanceCatchUp();
    case SimpleMove::kEnterPutOff:
      if (std::optional<Membership> entry = view_.TakeEntry()) Enter(*std::move(entry));
      return;
    case SimpleMove::kFinish:
      return Finish();
    case SimpleMove::kPublish:
      if (phase_ == Phase::kFinishing)
        final_model_.Publish(LabelOf(state_.schedule, state_.group, view_.current().id,
                                     options_.framework, parts_.compute.info().base));
      return;
    case SimpleMove::kDrain:
      return Drain();
    case SimpleMove::kTakeEarlyFrames:
      // Some are held again: those of a later tick, which takes them when it begins.
      for (EarlyFrames::Held& held : early_.TakeAll())
        if (held.frame.header.membership >= view_.newest()->id)
          moves_.Then(FrameMove{.peer = std::move(held.peer), .frame = std::move(held.frame)});
      return;
    case SimpleMove::kTakeEarlyFramesSoon:
      return TakeEarlyFramesSoon();
  }
}

}  // namespace pliant
