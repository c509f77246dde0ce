#include "trainer/runtime/learner_loop.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "base/overloaded.h"
#include "trainer/runtime/learner_loop_impl.h"

namespace pliant {
namespace {

// How long an exit waits for the last messages to go out.
constexpr Duration kLinger = std::chrono::milliseconds(250);

std::uint64_t CountOf(const LearnerParts& parts) { return parts.compute.info().gradient_elements; }

// How many ticks the others may be ahead of a member that catches up.
Tick MaxBacklog(std::size_t backlog_bytes, std::uint64_t gradient_elements) {
  return std::clamp<Tick>(backlog_bytes / std::max<std::uint64_t>(gradient_elements * 4, 1), 4, 64);
}

// Something will not return: nobody waits for it.
LearnerExit ExitOfHang(std::string hang) {
  log::Error("the program hangs", {{"cause", hang}});
  return {.reason = LeftReason::kFailed,
          .code = ErrorCode::kTimeout,
          .message = std::move(hang),
          .parameters_sha256 = "",
          .program_hangs = true};
}

std::size_t BytesOf(const StateDict& state) {
  std::size_t bytes = 0;
  for (const TensorView& tensor : state) bytes += tensor.bytes.size();
  return bytes;
}

}  // namespace

LearnerLoop::Impl::Impl(LearnerOptions options, Schedule schedule, LearnerParts parts,
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
      max_backlog_(MaxBacklog(options_.backlog_bytes, CountOf(parts))),
      states_(options_.state_batch_bytes,
              [this](int rank, Frame frame) { peers_.SendTo(rank, std::move(frame)); }),
      state_bytes_(BytesOf(parts.compute.state_shape())),
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
           .try_again =
               [this] {
                 if (phase_ == Phase::kFinishing) final_model_.Publish(Label());
               }}),
      ticks_(options_.check_state_every_steps, {.tasks = tasks_,
                                                .compute = parts.compute,
                                                .ledger = parts.ledger,
                                                .split = split_,
                                                .peers = peers_,
                                                .aborted = [this] { EnterNow(); }}),
      exchanges_(
          {.elements = CountOf(parts),
           .on_device = parts.compute.keeps_means(),
           .all_reduce = !split_.bitwise(),
           .buckets = options_.buckets,
           .buckets_of_rounds = options_.buckets_of_rounds},
          [this](int rank, Frame frame) { peers_.SendTo(rank, std::move(frame)); },
          parts.gradients),
      carrier_(
          !split_.bitwise(),
          {.loop = parts.loop,
           .tasks = tasks_,
           .communicators = parts.compute.communicators(),
           .exchanges = exchanges_,
           .peers = peers_,
           .stats = stats_,
           .on_failed =
               [this](const std::string& why) { Then(StopStep{{.accused = {}, .cause = why}}); },
           .on_hang = [this](std::string why) { Exit(ExitOfHang(std::move(why))); }}) {
  CHECK((parts.link == nullptr) == (parts.transport == nullptr), "peers come with a coordinator");
}

void LearnerLoop::Impl::Start() {
  if (parts_.transport != nullptr) parts_.transport->SetHandler(this);
  hang_watch_.Start();
  FindFinalThenStart();
}

// A learner that starts after the end of the job has nothing to do.
void LearnerLoop::Impl::FindFinalThenStart() {
  parts_.checkpointer.FindFinal(tasks_.Guard<Result<Manifest>>([this](Result<Manifest> final) {
    if (final) {
      state_.own.applied_ticks = final->position.tick;
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
      Then(EnterStep{
          {.id = {.term = 0, .counter = 1}, .members = {{.id = options_.self, .address = ""}}}});
    } else if (gone_by_) {
      LeaveWhenFree();
    } else {
      session_.Start();
    }
  }));
}

// ---- The coordinator ----

std::vector<LearnerMessage> LearnerLoop::Impl::Greeting() {
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
                                                .leaving = gone_by_.has_value(),
                                                .done = done()}};
  if (gone_by_) {
    greeting.push_back(Leaving{ToSeconds(std::max(*gone_by_ - tasks_.Now(), Duration::zero()))});
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

void LearnerLoop::Impl::Obey(const CoordinatorMessage& message) {
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
                   if (!announce.replaces) return Then(EnterStep{announce.membership});
                   if (view_.current().id == *announce.replaces && IsMember()) {
                     view_.SetAnnouncement(announce.membership);
                   }
                 },
                 [&](const Withdraw& withdraw) {
                   if (view_.Withdraw(withdraw.membership)) peers_.DropUnneeded();
                 },
                 [&](const Recover& recover) {
                   if (!recover.membership.RankOf(options_.self)) return;
                   Then(EnterStep{recover.membership});
                 },
                 [&](const Leave& leave) {
                   const bool is_needed = IsMember() || phase_ == Phase::kDraining;
                   if (leave.at_once && !is_needed) return LeaveUnlessFinal();
                   RequestLeave(options_.grace);
                 }},
      message);
  CarryOut();
}

Progress LearnerLoop::Impl::MakeProgress() {
  Progress progress{.tick = state_.own.applied_ticks,
                    .step = state_.step(),
                    .following = catching_up(),
                    .times = MeanTimes(reported_, stats_)};
  reported_ = stats_;
  if (IsMember() || phase_ == Phase::kFinishing) progress.membership = view_.current().id;
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

LearnerStats LearnerLoop::Impl::stats() const {
  LearnerStats stats = stats_;
  stats.member = IsMember();
  return stats;
}

// ---- What follows ----

void LearnerLoop::Impl::CarryOut() {
  if (moves_.empty()) return;  // the usual case: making a deque allocates memory
  std::deque<Move> moves;
  const auto take_new = [&] {  // moves that a move causes come before the other queued ones
    moves.insert(moves.begin(), std::make_move_iterator(moves_.begin()),
                 std::make_move_iterator(moves_.end()));
    moves_.clear();
  };
  for (take_new(); !moves.empty() && phase_ != Phase::kExited; take_new()) {
    Move move = std::move(moves.front());
    moves.pop_front();
    std::visit(Overloaded{[&](Step step) { Do(step); },
                          [&](EnterStep& step) {
                            Enter(std::move(step.membership), std::move(step.before));
                          },
                          [&](SwitchStep& step) { SwitchTo(step.membership); },
                          [&](LossStep& step) { OnLoss(std::move(step.loss)); },
                          [&](StopStep& step) { Stop(std::move(step.loss)); }},
               move);
  }
  moves_.clear();
}

void LearnerLoop::Impl::Do(Step step) {
  switch (step) {
    case Step::kAdvanceOpening:
      if (opening_ && !loading_) opening_->Advance();
      return;
    case Step::kBeginTraining:
      return BeginTraining();
    case Step::kBeginTick:
      return training_->BeginTick();
    case Step::kCommit:
      if (training_) training_->CommitWhenComplete();
      return;
    case Step::kAdvanceCatchUp:
      return training_->AdvanceCatchUp();
    case Step::kFinish:
      return Finish();
    case Step::kDrain:
      return Drain();
    case Step::kTakeEarlyFrames:
      return TakeEarlyFrames();
    case Step::kTakeEarlyFramesSoon:
      return TakeEarlyFramesSoon();
  }
}

// ---- Leaving ----

void LearnerLoop::Impl::RequestLeave(Duration grace) {
  if (phase_ == Phase::kExited) return;
  const TimePoint by = tasks_.Now() + grace;
  if (gone_by_ && *gone_by_ <= by) return;
  if (!gone_by_) log::Info("leaving", {{"graceSeconds", ToSeconds(grace)}});
  gone_by_ = by;
  session_.Send(Leaving{ToSeconds(grace)});
  // The coordinator has half of the grace period to arrange the leave.
  tasks_.After(grace / 2, [this] { drain_vote_ = true; });
  tasks_.After(grace, [this] {
    Exit({.reason = LeftReason::kDrained,
          .message = phase_ == Phase::kDraining
                         ? "its grace period ended before a checkpoint was written"
                         : "its grace period ended before it came to a boundary"});
  });
  LeaveWhenFree();
}

void LearnerLoop::Impl::LeaveWhenFree() {
  // Not while it starts: the final model may exist. Not while it is a member, or holds a state that
  // others may need.
  if (phase_ == Phase::kIdle && gone_by_ && !view_.entry_put_off()) LeaveUnlessFinal();
}

void LearnerLoop::Impl::LeaveUnlessFinal() {
  // A learner that is called back stays: others may need its state, whatever happens to that
  // membership.
  const auto called_back = [this, newest = view_.newest()] {
    return view_.newest() != newest || view_.entry_put_off();
  };
  // A checkpoint that several members write is worthless without this learner's slice.
  if (checkpoints_.writing()) {
    return checkpoints_.WhenWritten([this, called_back] {
      if (!called_back()) LeaveUnlessFinal();
    });
  }
  parts_.checkpointer.FindFinal(
      tasks_.Guard<Result<Manifest>>([this, called_back](Result<Manifest> final) {
        if (final) {
          state_.own.applied_ticks = final->position.tick;
          return Complete(final->parameters_sha256);
        }
        if (called_back()) return;
        Exit({.reason = LeftReason::kDrained, .message = "left as asked"});
      }));
}

void LearnerLoop::Impl::Fail(const Error& error) {
  if (phase_ == Phase::kExited) return;
  log::Error("learner failed", {{"cause", error.message}});
  Exit({.reason = LeftReason::kFailed, .code = error.code, .message = error.message});
}

void LearnerLoop::Impl::Exit(LearnerExit exit) {
  if (phase_ == Phase::kExited) return;
  phase_ = Phase::kExited;
  exit.step = state_.step();
  session_.Send(Left{.applied_ticks = state_.own.applied_ticks,
                     .reason = exit.reason,
                     .message = exit.message,
                     .parameters_sha256 = exit.parameters_sha256});
  ticks_.Abort();
  // From here on no callback runs; only the exit itself is left.
  session_.End();
  tasks_.End();
  tasks_.After(parts_.link == nullptr ? Duration::zero() : kLinger,
               [this, exit = std::move(exit)] { on_exit_(exit); });
}

// ---- The shell ----

LearnerLoop::LearnerLoop(LearnerOptions options, Schedule schedule, LearnerParts parts,
                         std::function<void(LearnerExit)> on_exit)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(schedule), parts,
                                   std::move(on_exit))) {}
LearnerLoop::~LearnerLoop() = default;

void LearnerLoop::Start() { impl_->Start(); }
void LearnerLoop::AskForLearners(int learners) { impl_->AskForLearners(learners); }
void LearnerLoop::RequestLeave(Duration grace) { impl_->RequestLeave(grace); }
void LearnerLoop::Fail(const Error& error) { impl_->Fail(error); }
Tick LearnerLoop::applied_ticks() const { return impl_->applied_ticks(); }
LearnerStats LearnerLoop::stats() const { return impl_->stats(); }

}  // namespace pliant
