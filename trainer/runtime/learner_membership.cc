#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "trainer/data/batch_rule.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {

void LearnerLoop::OnLoss(Loss loss) {
  if (phase_ == Phase::kDraining || phase_ == Phase::kFinishing) {
    // Rank 0 completes the checkpoint or the model: it is needed. The others may go when their part
    // is done.
    if (view_.rank() != 0 && std::ranges::contains(loss.accused, view_.member(0)))
      Stop(std::move(loss));
    return;
  }
  if (!IsMember(phase_)) return;
  if (!training_ || !training_->committing()) return Stop(std::move(loss));
  view_.PutOffLoss(std::move(loss));
}

void LearnerLoop::Stop(Loss loss) {
  log::Warning("stopped",
               {{"membership", ToString(view_.current().id)},
                {"tick", state_.applied()},
                {"lost", loss.accused.empty() ? std::string() : loss.accused.front().name},
                {"cause", loss.cause}});
  if (phase_ == Phase::kTicking) ++stats_.ticks_aborted;
  const bool writes_pending = phase_ == Phase::kDraining || phase_ == Phase::kFinishing;
  phase_ = Phase::kStopped;
  ticks_.Abort();
  if (training_) training_->Leave();
  states_.Clear();
  opening_.reset();
  if (!writes_pending) peers_.SendToAll(FrameKind::kAbort);
  // In a drain the newest membership is the empty one; the coordinator has it as the newest, too.
  lost_ = Lost{.membership = view_.newest()->id,
               .tick = state_.applied(),
               .accused = std::move(loss.accused),
               .cause = std::move(loss.cause)};
  session_.Send(*lost_);
  if (done()) final_model_.Poll();
}

// ---- Proposals ----

void LearnerLoop::Propose(Membership membership, std::optional<MembershipId> replaces) {
  if (!view_.Propose(std::move(membership), replaces)) return;
  peers_.DropUnneeded();
  peers_.Connect(view_.proposal()->membership);
  CheckPrepared();
  // The commit may have been waiting for a member that catches up; a leave overrides that.
  if (phase_ == Phase::kTicking && !catching_up() && !view_.entry_put_off())
    moves_.Then(SimpleMove::kCommit);
}

void LearnerLoop::CheckPrepared() {
  const auto& proposal = view_.proposal();
  if (!proposal || !peers_.ConnectedToAll(proposal->membership)) return;
  if (view_.SetPrepared()) session_.Send(Prepared{proposal->membership.id});
}

// ---- Entering ----

void LearnerLoop::Enter(Membership membership, std::vector<Member> before) {
  if (!view_.MayEnter(membership.id)) return;
  ticks_.Abort();
  const bool committing = training_ && training_->committing();
  if (training_ && !committing) training_->EndCatchUp();
  if (committing || loading_ || ticks_.aborting() || catching_up()) {
    // This learner's state is changing. It enters after that, so that it announces the final state.
    if (ticks_.aborting()) carrier_.Leave();  // limits how long the abort of its rounds may take
    peers_.Connect(membership);
    return view_.PutOffEntry(std::move(membership));
  }
  const bool by_boundary = !before.empty();
  view_.Enter(std::move(membership), std::move(before));
  phase_ = Phase::kOpening;
  lost_.reset();
  training_.reset();
  checkpoints_.OnEntered(/*recovery=*/!by_boundary);
  log::Info("entered", {{"membership", ToString(view_.current().id)},
                        {"rank", view_.rank()},
                        {"learners", view_.current().learners()},
                        {"tick", state_.applied()}});
  session_.Send(Entered{.membership = view_.current(), .applied_ticks = state_.applied()});

  states_.Clear();
  // With another number of ranks the samples are cut differently.
  if (!split_.bitwise()) ticks_.ForgetPartial();
  OpeningRun::Owner& owner = *this;
  opening_.emplace(
      OpeningRun::Options{.membership = view_.current().id,
                          .world_size = view_.current().world_size(),
                          .self = view_.rank(),
                          .job = JobOf(state_.schedule.spec(), parts_.compute.info().base),
                          .bitwise = split_.bitwise(),
                          .timeout = options_.opening_timeout},
      context_, owner,
      StateSummary{.position = state_.own,
                   .current = by_boundary,
                   .finished = ticks_.partial().node_indices()});
  if (!peers_.alone()) {
    peers_.DropUnneeded();
    peers_.Connect(view_.current());
    opening_->Begin();
  }
  TakeEarlyFramesSoon();
}

void LearnerLoop::SwitchTo(const Membership& membership) {
  const bool all_leave = membership.members.empty();
  if (!all_leave && membership.RankOf(options_.self)) {
    // A member that catches up does not hold the state of this boundary.
    if (catching_up()) return moves_.Then(EnterMove{membership});
    return Enter(membership, view_.MembersToAnswerFor(membership, training_->in_sync()));
  }
  training_->Leave();
  view_.Release(membership);
  session_.Send(Entered{.membership = membership, .applied_ticks = state_.own.applied_ticks});
  if (all_leave) return moves_.Then(SimpleMove::kDrain);
  log::Info("released", {{"membership", ToString(membership.id)}, {"tick", state_.applied()}});
  phase_ = Phase::kReleased;
  TakeEarlyFramesSoon();
}

// ---- The opening ----

void LearnerLoop::LoadState(std::shared_ptr<const StateCopy> state, StateSummary holding) {
  loading_ = true;
  parts_.compute.LoadState(std::move(state), tasks_.Guard<Status>([this, holding](Status status) {
    loading_ = false;
    if (!status) return Fail(status.error());
    state_.MoveTo(holding.position);
    state_.RecordStopRequest(parts_.compute, state_.applied());
    state_.max_applied = std::max(state_.max_applied, state_.applied());
    ticks_.ForgetPartial();
    if (view_.entry_put_off()) return moves_.Then(SimpleMove::kEnterPutOff);
    if (opening_) opening_->OnLoaded(holding);
  }));
}

// ---- Training ----

void LearnerLoop::BeginTraining() {
  phase_ = Phase::kTicking;
  Training::Owner& owner = *this;
  training_.emplace(
      Training::Options{.state_slice_bytes = options_.state_slice_bytes,
                        .max_backlog = MaxBacklog(options_.backlog_bytes,
                                                  parts_.compute.info().gradient_elements),
                        .unix_offset_seconds = options_.unix_offset_seconds},
      context_, ticks_, carrier_, owner, opening_->opening());
  opening_.reset();
  training_->Begin();
  if (catching_up()) session_.SendProgress();  // now: another learner may wait to leave
  if (!state_.at_the_end()) return moves_.Then(SimpleMove::kBeginTick);
  if (done()) training_->ReportOpened();
  moves_.Then(SimpleMove::kFinish);
}

Trailer LearnerLoop::TrailerHead(const TickPlan& plan) {
  const DataSpec& spec = state_.schedule.spec();
  const bool decides = view_.rank() == 0 && plan.last_of_epoch && spec.max_doublings > 0;
  return {.shards = {},
          .save = view_.rank() == 0 && checkpoints_.Due(plan, state_.applied() + 1),
          // Without a coordinator nobody arranges who continues: if all have to leave, they save
          // and exit.
          .may_drain = leaving_ && (leaving_->drain_vote || !session_.linked()),
          // All follow rank 0, also those that catch up and do not know the state yet.
          .doublings = decides
                           ? std::optional(NextDoublings(spec, plan.doublings, state_.own.noise))
                           : std::nullopt,
          .announced = view_.announcement()};
}

// A member that received news of a leaver did not wait: it has begun the next tick.
bool LearnerLoop::OthersContinue() const {
  return std::ranges::any_of(early_.frames(), [&](const EarlyFrames::Held& held) {
    const FrameHeader& header = held.frame.header;
    return header.membership == view_.current().id && header.tick > state_.applied();
  });
}

void LearnerLoop::OnBoundary(const TickOutcome& outcome) {
  // Whatever follows: the next tick may change the state.
  if (auto best = std::exchange(state_.best, std::nullopt); best && view_.rank() == 0) {
    checkpoints_.ExportBest(LabelOf(state_.schedule, state_.group, view_.current().id,
                                    options_.framework, parts_.compute.info().base),
                            *std::move(best));
  }
  if (view_.entry_put_off()) return moves_.Then(SimpleMove::kEnterPutOff);
  if (state_.at_the_end()) return moves_.Then(SimpleMove::kFinish);
  // The program may wish for a checkpoint on some learners only, so then rank 0 writes all of it.
  const bool wished = state_.TakeCheckpointWish(view_.rank() == 0, checkpoints_.saving());
  if (outcome.save || wished) {
    const int slices =
        outcome.save ? training_->CheckpointSlices(options_.checkpoint_slice_bytes) : 1;
    SaveCheckpoint(slices, [](bool) {});
  }
  if (outcome.announced && outcome.announced->id > view_.current().id) {
    return moves_.Then(SwitchMove{*outcome.announced});
  }
  if (outcome.may_drain) return moves_.Then(SimpleMove::kDrain);
  if (std::optional<Loss> loss = view_.TakeLoss()) return moves_.Then(StopMove{*std::move(loss)});
  moves_.Then(SimpleMove::kBeginTick);
}

}  // namespace pliant
