#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "trainer/checkpoint/state_slice.h"
#include "trainer/runtime/learner_loop_impl.h"

// A member that does not hold the state of its membership follows: it computes no shards, and
// nobody waits for it. The others send it their committed state as of the membership's beginning,
// each a slice, and of every tick what all get: the reduced gradient, the buffers, the trailers.
// When the state is there it applies the ticks since then, and says that it is in step; who hears
// of it repeats it in its trailer, so that all know it after the same tick.

namespace pliant {

// ---- The others ----

std::vector<int> LearnerLoop::Impl::StateSources() const {
  std::vector<int> sources;
  for (std::size_t rank = 0; rank < in_step_.size(); ++rank) {
    if (in_step_[rank]) sources.push_back(static_cast<int>(rank));
  }
  sources.resize(static_cast<std::size_t>(
      SlicesFor(state_bytes_, options_.state_slice_bytes, static_cast<int>(sources.size()))));
  return sources;
}

// The copy is made beside the first forward.
void LearnerLoop::Impl::ServeFollowers() {
  const std::vector<int> sources = StateSources();
  const auto own = std::ranges::find(sources, rank());
  if (own == sources.end() || !std::ranges::contains(in_step_, false)) return;
  const StateSlice slice{.index = static_cast<int>(own - sources.begin()),
                         .count = static_cast<int>(sources.size())};
  parts_.compute.CopyState(
      slice, Guarded<Result<std::shared_ptr<const StateCopy>>>(
                 [this, id = membership_.id,
                  applied = applied_](Result<std::shared_ptr<const StateCopy>> state) {
                   if (!state) return Fail(state.error());
                   if (membership_.id != id) return;
                   if (phase_ != Phase::kTicking && phase_ != Phase::kFinishing) return;
                   for (std::size_t rank = 0; rank < in_step_.size(); ++rank) {
                     if (in_step_[rank]) continue;
                     const int follower = static_cast<int>(rank);
                     serving_.emplace(follower, StateSender(id, applied, *state));
                     for (int i = 0; i < kBatchesUnderWay; ++i) ServeNext(follower);
                   }
                 }));
}

void LearnerLoop::Impl::ServeNext(int follower) {
  const auto serving = serving_.find(follower);
  if (serving == serving_.end()) return;
  serving->second.SendBatch(options_.state_batch_bytes,
                            [&](Frame frame) { Send(member(follower), std::move(frame)); });
  if (serving->second.done()) serving_.erase(serving);
}

void LearnerLoop::Impl::OnFollowerTrailer(int follower, const Frame& frame) {
  const Result<Trailer> trailer = DecodeTrailer(frame.payload.view);
  if (!trailer) return StopOnViolation(member(follower), trailer.error().message);
  const auto index = static_cast<std::size_t>(follower);
  followed_to_[index] = std::max(followed_to_[index], frame.header.tick);
  if (trailer->in_step) said_in_step_[index] = true;
  CommitWhenComplete();
}

// What it has not taken yet is in memory, here or there. But whoever is about to leave is not to
// wait for it, and it begins anew then.
bool LearnerLoop::Impl::FollowersAreFarBehind() const {
  if (following_ || OthersGoOn()) return false;
  const auto stays = [&](const Member& member) {
    return proposal_->membership.RankOf(member.id).has_value();
  };
  if (proposal_ && !std::ranges::all_of(membership_.members, stays)) return false;
  for (std::size_t rank = 0; rank < in_step_.size(); ++rank) {
    if (!in_step_[rank] && applied_ > followed_to_[rank] + backlog_most_) return true;
  }
  return false;
}

// One that knows of somebody who leaves has begun the next tick.
bool LearnerLoop::Impl::OthersGoOn() const {
  return std::ranges::any_of(held_.frames(), [&](const HeldFrames::Held& held) {
    return held.frame.header.membership == membership_.id && held.frame.header.tick > applied_;
  });
}

// ---- The follower ----

void LearnerLoop::Impl::BeginFollowing(const Holding& furthest) {
  following_.emplace(
      Following{.applied = applied_,
                .evaluation = metrics_.evaluation(),
                .last_line = last_line_,
                .state = SlicedStateReceiver(parts_.compute.state_shape(), StateSources()),
                .from = furthest,
                .backlog = {},
                .last = {}});
  applied_ = furthest.applied_ticks;
  ended_at_.reset();  // that its own state was the last says nothing of theirs
  metrics_.Restart(furthest.evaluation);
  last_line_ = furthest.last_line;
}

void LearnerLoop::Impl::OnFollowedState(int source, const Frame& frame) {
  Following& following = *following_;
  if (following.ended || following.loaded || following.busy) return;
  if (const Status status = following.state.OnFrame(source, frame); !status) {
    return StopOnViolation(member(source), status.error().message);
  }
  if ((frame.header.node & kLastOfBatch) != 0) AskForMoreState(source);
  if (!following.state.done()) return;
  following.busy = true;
  parts_.compute.LoadState(following.state.Take(), Guarded<Status>([this](Status status) {
                             if (!status) return Fail(status.error());
                             following_->loaded = true;
                             following_->applied = following_->from.applied_ticks;
                             NoteWish(following_->applied);
                             following_->evaluation = following_->from.evaluation;
                             following_->last_line = following_->from.last_line;
                             has_state_ = true;
                             lineage_ = following_->from.lineage;
                             // Until now it was of use: had the state not come, the next membership
                             // might begin with the tick that it belongs to.
                             ForgetTick();
                             OnFollowedOperation();
                           }));
}

// A tick is complete.
void LearnerLoop::Impl::Follow(const TickOutcome& outcome) {
  FollowedTick tick{.plan = plan_,
                    .gradient = {},
                    .buffers = round_.buffers(),
                    .sums = outcome.sums,
                    .evaluated = EvaluationEndedBy(outcome),
                    .evaluation = {},
                    .last_line = ""};
  if (plan_.kind == TickKind::kTrain) {
    // The reduction uses its buffer again.
    tick.gradient = FloatBuffer(reduction_.root().size());
    std::ranges::copy(reduction_.root(), tick.gradient.view().begin());
  }
  if (std::ranges::contains(outcome.came_in_step, rank())) {
    committing_ = true;
    following_->last = outcome;
    following_->backlog.push_back(std::move(tick));
    return ApplyFollowed();
  }
  NoteOutcome(outcome);
  tick.evaluation = metrics_.evaluation();
  tick.last_line = last_line_;
  following_->backlog.push_back(std::move(tick));
  ++applied_;
  bucket_choice_ = outcome.buckets_next;
  redo_.reset();
  Boundary(outcome);
}

void LearnerLoop::Impl::ApplyFollowed() {
  Following& following = *following_;
  while (following.loaded && !following.busy && !following.ended && !following.backlog.empty()) {
    const FollowedTick tick = std::move(following.backlog.front());
    following.backlog.pop_front();
    const auto applied = [this, tick] {
      const bool is_last = following_->last && following_->applied == applied_;
      if (parts_.ledger != nullptr && tick.plan.kind == TickKind::kTrain && !is_last) {
        parts_.ledger->Committed(membership_.id, following_->applied);
      }
      ++following_->applied;
      if (!split_.bitwise()) lineage_ = membership_.id;
      following_->evaluation = tick.evaluation;
      following_->last_line = tick.last_line;
    };
    if (tick.plan.kind == TickKind::kEvaluate && !tick.evaluated) {
      applied();
      continue;
    }
    following.busy = true;
    const auto done = Guarded<Status>([this, applied](Status status) {
      if (!status) return Fail(status.error());
      applied();
      NoteWish(following_->applied);
      OnFollowedOperation();
    });
    if (tick.evaluated) {
      parts_.compute.Evaluated(*tick.evaluated, done);
    } else {
      parts_.compute.Commit({.epoch = tick.plan.epoch,
                             .step = tick.plan.step,
                             .gradient = tick.gradient.view(),
                             .buffers = tick.buffers,
                             .sums = tick.sums},
                            done);
    }
  }
  const bool up_to_date = following.loaded && !following.busy && following.backlog.empty();
  if (up_to_date && (committing_ || phase_ == Phase::kFinishing)) ComeInStep();
}

void LearnerLoop::Impl::OnFollowedOperation() {
  following_->busy = false;
  if (following_->ended) {
    StopFollowing();
    if (pending_) Enter(*std::exchange(pending_, std::nullopt));
    return;
  }
  // The others have known since they committed it that this was the last one.
  if (phase_ == Phase::kTicking && !committing_ && at_the_end()) return Finish();
  ApplyFollowed();
  if (following_) TellFollowed();
}

// While too much waits here for the state it says nothing, and the others wait.
void LearnerLoop::Impl::TellFollowed() {
  Following& following = *following_;
  if (phase_ != Phase::kTicking || committing_ || following.backlog.size() >= backlog_most_) return;
  const std::size_t to_apply = following.backlog.size() + (following.busy ? 1 : 0);
  const bool in_step = following.told_in_step || (following.loaded && to_apply <= 1);
  if (following.told == applied_ && following.told_in_step == in_step) return;
  following.told = applied_;
  following.told_in_step = in_step;
  // Of the tick that it has had: none of the others can be behind that, so nobody puts it aside.
  const Bytes trailer = EncodeTrailer({.in_step = in_step});
  for (const Member& member : membership_.members) {
    if (member.id == options_.self) continue;
    Send(member.id, {.header = {.kind = FrameKind::kTrailer,
                                .membership = membership_.id,
                                .tick = applied_ - std::min<Tick>(applied_, 1)},
                     .payload = trailer});
  }
}

void LearnerLoop::Impl::ComeInStep() {
  const std::optional<TickOutcome> last = std::move(following_->last);
  CHECK(following_->applied == applied_ + (last ? 1 : 0), "it has applied all ticks");
  following_.reset();
  committing_ = false;
  log::Info("in step", {{"membership", ToString(membership_.id)}, {"tick", applied_}});
  if (last) return OnCommitted(*last);
  ReportOpened();  // no tick is left
}

void LearnerLoop::Impl::EndFollowing() {
  if (!following_) return;
  following_->ended = true;
  following_->backlog.clear();
  if (!following_->busy) StopFollowing();
}

// It is left with what its own state has come to.
void LearnerLoop::Impl::StopFollowing() {
  applied_ = following_->applied;
  NoteWish(applied_);
  metrics_.Restart(following_->evaluation);
  last_line_ = following_->last_line;
  following_.reset();
}

}  // namespace pliant
