#include "trainer/runtime/learner_loop.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "trainer/runtime/learner_loop_impl.h"

namespace pliant {
namespace {

// So long an exit waits for what was sent last to go out.
constexpr Duration kLinger = std::chrono::milliseconds(250);
constexpr Duration kVolumeRetry = std::chrono::seconds(1);
constexpr int kVolumeTries = 10;

std::optional<TickTimes> TimesBetween(const LearnerFigures& then, const LearnerFigures& now) {
  if (now.ticks == then.ticks) return std::nullopt;
  const auto ticks = static_cast<double>(now.ticks - then.ticks);
  const double computing = ToSeconds(now.computing - then.computing);
  const std::uint64_t shards = now.shards - then.shards;
  return TickTimes{
      .shard_seconds = shards > 0 ? computing / static_cast<double>(shards) : 0,
      .compute_seconds = computing / ticks,
      .data_wait_seconds = ToSeconds(now.data_waiting - then.data_waiting) / ticks,
      .wait_seconds = ToSeconds(now.waiting - then.waiting) / ticks,
      .commit_seconds = ToSeconds(now.committing - then.committing) / ticks,
      .sent_bytes = static_cast<double>(now.bytes_sent - then.bytes_sent) / ticks,
      .received_bytes = static_cast<double>(now.bytes_received - then.bytes_received) / ticks};
}

std::uint64_t CountOf(const LearnerParts& parts) { return parts.compute.info().gradient_elements; }

// How many ticks the others may be ahead of a follower.
Tick BacklogMost(std::size_t backlog_bytes, std::uint64_t gradient_elements) {
  return std::clamp<Tick>(backlog_bytes / std::max<std::uint64_t>(gradient_elements * 4, 1), 4, 64);
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
      schedule_(std::move(schedule)),
      split_(schedule_, options_.reproducibility),
      parts_(parts),
      on_exit_(std::move(on_exit)),
      term_(options_.term_least),
      held_(LimitsFor({.gradient_bytes = CountOf(parts) * sizeof(float),
                       .buffer_bytes = parts.compute.info().buffer_bytes,
                       .logical_shards = static_cast<std::size_t>(schedule_.spec().logical_shards),
                       .ticks_ahead = BacklogMost(options_.backlog_bytes, CountOf(parts)),
                       .state_batch_bytes = options_.state_batch_bytes})),
      backlog_most_(BacklogMost(options_.backlog_bytes, CountOf(parts))),
      reduction_(
          CountOf(parts), [this](int rank, Frame frame) { Send(member(rank), std::move(frame)); },
          parts.gradients),
      bucket_sizes_(DistinctBucketSizes(CountOf(parts), options_.bucket_sizes)),
      bucket_tuner_(bucket_sizes_.size()),
      state_bytes_(BytesOf(parts.compute.state_shape())),
      final_backoff_({}) {
  CHECK((parts.link == nullptr) == (parts.transport == nullptr), "peers come with a coordinator");
}

void LearnerLoop::Impl::Start() {
  if (parts_.transport != nullptr) parts_.transport->SetHandler(this);
  if (watch_.watches()) WatchProgram();
  FindFinalThenStart();
}

// A learner that comes after the end has nothing to do.
void LearnerLoop::Impl::FindFinalThenStart() {
  parts_.checkpointer.FindFinal(Guarded<Result<Manifest>>([this](Result<Manifest> final) {
    if (final) {
      applied_ = final->position.tick;
      return Complete(final->parameters_sha256);
    }
    const ErrorCode code = final.error().code;
    if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) {
      return TryVolumeAgain(final.error(), [this] { FindFinalThenStart(); });
    }
    volume_tries_ = 0;
    phase_ = Phase::kIdle;
    if (parts_.link == nullptr) {
      // Alone: a membership of one, for good.
      Enter({.id = {.term = 0, .counter = 1}, .members = {{.id = options_.self, .address = ""}}});
    } else if (leave_requested_) {
      LeaveWhenFree();
    } else {
      parts_.link->Start(this);
    }
  }));
}

void LearnerLoop::Impl::TryVolumeAgain(const Error& error, std::function<void()> task) {
  if (++volume_tries_ >= kVolumeTries) return Fail(InContext("checkpoint volume", error));
  log::Warning("checkpoint volume cannot be read", {{"cause", error.message}});
  After(kVolumeRetry, std::move(task));
}

// ---- The coordinator ----

void LearnerLoop::Impl::Tell(const LearnerMessage& message) {
  if (linked_) parts_.link->Send(message);
}

void LearnerLoop::Impl::OnCoordinatorConnected() {
  if (phase_ == Phase::kExited) return;
  linked_ = true;
  welcomed_ = false;
  Tell(Hello{.learner = options_.self,
             .ranks = options_.ranks,
             .address = parts_.transport->address(),
             .fingerprint = options_.fingerprint,
             .membership = newest_,
             .before = membership_before(),
             .applied_ticks = state_ticks(),
             .has_state = has_state_,
             .leaving = leave_requested_,
             .done = done()});
  // What was said before may have been lost with the connection, or its reader.
  if (leave_requested_) {
    Tell(Leaving{ToSeconds(std::max(*gone_by_ - parts_.loop.Now(), Duration::zero()))});
  }
  if (opened_reported_) {
    Tell(Opened{
        .membership = membership_.id, .applied_ticks = applied_, .pause_seconds = pause_seconds_});
  }
  if (lost_) Tell(*lost_);
  if (proposal_ && proposal_->prepared) Tell(Prepared{proposal_->membership.id});
  ++heartbeat_round_;
  SendHeartbeat();
}

void LearnerLoop::Impl::OnCoordinatorDisconnected(std::string_view reason) {
  if (phase_ == Phase::kExited) return;
  linked_ = false;
  ++heartbeat_round_;
  log::Warning("coordinator connection lost", {{"reason", reason}});
}

void LearnerLoop::Impl::OnCoordinatorMessage(CoordinatorMessage message) {
  if (phase_ == Phase::kExited || !linked_) return;
  // Its term is checked once: memberships that it passes on may be of a coordinator before it.
  if (!welcomed_ && !std::holds_alternative<Welcome>(message) &&
      !std::holds_alternative<Refused>(message)) {
    return;
  }
  std::visit([this](const auto& value) { On(value); }, message);
}

void LearnerLoop::Impl::On(const Welcome& welcome) {
  if (welcome.term < term_) {
    // The coordinator before the one that is known: it has not noticed yet that it is over.
    log::Warning("old coordinator", {{"term", welcome.term}, {"known", term_}});
    linked_ = false;
    ++heartbeat_round_;
    parts_.link->Redial();
    return;
  }
  welcomed_ = true;
  term_ = welcome.term;
  if (welcome.heartbeat_seconds > 0) {
    heartbeat_ = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(welcome.heartbeat_seconds));
  }
}

void LearnerLoop::Impl::On(const Refused& refused) {
  Exit({.reason = LeftReason::kFailed,
        .code = ErrorCode::kDenied,
        .message = Format("refused by the coordinator: {}: {}", refused.reason, refused.message)});
}

void LearnerLoop::Impl::On(const Prepare& prepare) {
  Propose(prepare.membership, prepare.replaces);
}

void LearnerLoop::Impl::On(const Announce& announce) {
  if (newest_ && announce.membership.id <= newest_->id) return;
  if (!announce.replaces) return Enter(announce.membership);
  if (membership_.id == *announce.replaces && IsMember()) announcement_ = announce.membership;
}

void LearnerLoop::Impl::On(const Withdraw& withdraw) {
  if (!proposal_ || proposal_->membership.id != withdraw.membership) return;
  proposal_.reset();
  DropConnections();
}

void LearnerLoop::Impl::On(const Recover& recover) {
  if (!recover.membership.RankOf(options_.self)) return;
  Enter(recover.membership);
}

void LearnerLoop::Impl::On(const Leave& leave) {
  if (leave.at_once && !IsMember() && phase_ != Phase::kDraining) return LeaveUnlessFinal();
  RequestLeave(options_.grace);
}

void LearnerLoop::Impl::TellProgress() {
  Progress progress{.tick = state_ticks(),
                    .step = step(),
                    .following = following_.has_value(),
                    .times = TimesBetween(told_, figures_)};
  told_ = figures_;
  if (IsMember() || phase_ == Phase::kFinishing) progress.membership = membership_.id;
  if (progress.membership && rank() == 0) {
    const Tick tick = std::min<Tick>(applied_, schedule_.total_ticks() - 1);
    progress.figures =
        Progress::Figures{.epoch = schedule_.At(tick).epoch,
                          .total_steps = at_the_end() ? step() : schedule_.total_steps(),
                          .samples = schedule_.SamplesBefore(applied_),
                          .loss = metrics_.loss(),
                          .samples_per_second = metrics_.samples_per_second(),
                          .accuracy = metrics_.accuracy(),
                          .evaluated_epoch = metrics_.evaluated_epoch()};
    if (learners_asked_ > 0) progress.figures->learners_asked = learners_asked_;
    if (checkpoint_known_) progress.figures->last_checkpoint = checkpoint_report_;
  }
  Tell(progress);
}

void LearnerLoop::Impl::SendHeartbeat() {
  TellProgress();
  After(heartbeat_, [this, round = heartbeat_round_] {
    if (round == heartbeat_round_) SendHeartbeat();
  });
}

LearnerFigures LearnerLoop::Impl::figures() const {
  LearnerFigures figures = figures_;
  figures.member = IsMember();
  return figures;
}

// ---- Leaving ----

void LearnerLoop::Impl::RequestLeave(Duration grace) {
  if (phase_ == Phase::kExited) return;
  const TimePoint by = parts_.loop.Now() + grace;
  if (gone_by_ && *gone_by_ <= by) return;
  gone_by_ = by;
  if (!leave_requested_) log::Info("leaving", {{"graceSeconds", ToSeconds(grace)}});
  leave_requested_ = true;
  Tell(Leaving{ToSeconds(grace)});
  // Half of the grace is the coordinator's to arrange it.
  After(grace / 2, [this] { last_call_ = true; });
  After(grace, [this] {
    Exit({.reason = LeftReason::kDrained,
          .message = phase_ == Phase::kDraining
                         ? "its grace was over before a checkpoint was written"
                         : "its grace was over before it came to a boundary"});
  });
  LeaveWhenFree();
}

void LearnerLoop::Impl::LeaveWhenFree() {
  // Not while it starts: the final model may be there. Not while it is a member, or holds a state
  // that others may need.
  if (phase_ == Phase::kIdle && leave_requested_ && !pending_) LeaveUnlessFinal();
}

void LearnerLoop::Impl::LeaveUnlessFinal() {
  if (writing_ > 0) {
    // A checkpoint of several would be worth nothing without its slice.
    leave_when_written_ = true;
    return;
  }
  parts_.checkpointer.FindFinal(Guarded<Result<Manifest>>([this](Result<Manifest> final) {
    if (final) {
      applied_ = final->position.tick;
      return Complete(final->parameters_sha256);
    }
    if (IsMember()) return;  // it was called back meanwhile
    Exit({.reason = LeftReason::kDrained, .message = "left as asked"});
  }));
}

// While it hangs this learner lives and says so: nobody else can tell that it will not go on.
void LearnerLoop::Impl::WatchProgram() {
  if (auto hang = watch_.Look(parts_.compute.call(), parts_.loop.Now())) {
    log::Error("the program hangs", {{"cause", *hang}});
    return Exit({.reason = LeftReason::kFailed,
                 .code = ErrorCode::kTimeout,
                 .message = *std::move(hang),
                 .parameters_sha256 = "",
                 .program_hangs = true});
  }
  After(watch_.pause(), [this] { WatchProgram(); });
}

void LearnerLoop::Impl::Fail(const Error& error) {
  if (phase_ == Phase::kExited) return;
  log::Error("learner failed", {{"cause", error.message}});
  Exit({.reason = LeftReason::kFailed, .code = error.code, .message = error.message});
}

void LearnerLoop::Impl::Exit(LearnerExit exit) {
  if (phase_ == Phase::kExited) return;
  phase_ = Phase::kExited;
  exit.step = step();
  Tell(Left{.applied_ticks = state_ticks(),
            .reason = exit.reason,
            .message = exit.message,
            .parameters_sha256 = exit.parameters_sha256});
  GiveUpTick();
  // From here on every callback finds the learner gone; only the exit itself is left.
  parts_.compute.ForgetCallbacks();
  alive_ = std::make_shared<bool>(true);
  After(parts_.link == nullptr ? Duration::zero() : kLinger,
        [this, exit = std::move(exit)] { on_exit_(exit); });
}

void LearnerLoop::Impl::After(Duration delay, std::function<void()> task) {
  parts_.loop.PostAfter(delay, [alive = std::weak_ptr(alive_), task = std::move(task)] {
    if (!alive.expired()) task();
  });
}

CheckpointLabel LearnerLoop::Impl::Label() const {
  // An evaluation is done again as a whole. Until its end, when the program hears of it and may
  // change the state, that is as before it: within it the position is its beginning.
  Tick tick = applied_;
  while (tick > 0 && tick < schedule_.total_ticks() &&
         schedule_.At(tick).kind == TickKind::kEvaluate &&
         schedule_.At(tick - 1).kind == TickKind::kEvaluate) {
    --tick;
  }
  const DataSpec& spec = schedule_.spec();
  return {
      .position = {.step = step(),
                   .tick = tick,
                   .epoch = tick < schedule_.total_ticks() ? schedule_.At(tick).epoch : spec.epochs,
                   .membership = membership_.id},
      .job = {.seed = spec.seed,
              .global_batch_size = spec.global_batch_size,
              .logical_shards = spec.logical_shards,
              .train_samples = spec.train_samples,
              .test_samples = spec.test_samples},
      .framework = options_.framework};
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
LearnerFigures LearnerLoop::figures() const { return impl_->figures(); }

}  // namespace pliant
