#include <algorithm>
#include <format>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "trainer/runtime/learner_loop_impl.h"

namespace pliant {
namespace {

// A connection that worked and broke while a membership opens is given less time than a new one.
constexpr Duration kReconnectMost = std::chrono::seconds(1);
constexpr Duration kOpeningCheck = std::chrono::milliseconds(200);

// Where it stands among peers in order, or would.
auto PlaceOf(auto& peers, const LearnerId& id) {
  return std::ranges::lower_bound(peers, id, {},
                                  [](const auto& peer) -> const LearnerId& { return *peer; });
}

}  // namespace

// ---- Connections ----

void LearnerLoop::Impl::ConnectTo(const Membership& membership) {
  for (const Member& member : membership.members) {
    if (member.id == options_.self) continue;
    const auto place = PlaceOf(dialed_, member.id);
    if (place == dialed_.end() || **place != member.id) {
      dialed_.insert(place, std::make_shared<const LearnerId>(member.id));
    }
    parts_.transport->Connect(member);
  }
}

std::shared_ptr<const LearnerId> LearnerLoop::Impl::Shared(const LearnerId& peer) const {
  const auto place = PlaceOf(dialed_, peer);
  if (place != dialed_.end() && **place == peer) return *place;
  return std::make_shared<const LearnerId>(peer);
}

void LearnerLoop::Impl::DropConnections() {
  if (parts_.transport == nullptr) return;
  std::set<LearnerId> needed;
  const auto need = [&](const std::vector<Member>& members) {
    for (const Member& member : members) needed.insert(member.id);
  };
  need(membership_.members);
  need(before_);
  if (newest_) need(newest_->members);
  if (pending_) need(pending_->members);
  if (proposal_) need(proposal_->membership.members);
  std::erase_if(dialed_, [&](const std::shared_ptr<const LearnerId>& peer) {
    if (needed.contains(*peer)) return false;
    parts_.transport->Disconnect(*peer);
    return true;
  });
}

void LearnerLoop::Impl::Send(const LearnerId& peer, Frame frame) {
  figures_.bytes_sent += frame.payload.view.size();
  parts_.transport->Send(peer, std::move(frame));
}

void LearnerLoop::Impl::SendToPeer(const LearnerId& peer, FrameKind kind, Bytes payload) {
  Send(peer, {.header = {.kind = kind, .membership = membership_.id, .tick = applied_},
              .payload = std::move(payload)});
}

void LearnerLoop::Impl::SendToMembers(FrameKind kind, Bytes payload) {
  for (const Member& member : membership_.members) {
    if (member.id != options_.self) SendToPeer(member.id, kind, payload);
  }
}

void LearnerLoop::Impl::OnPeerConnected(const LearnerId& peer) {
  if (phase_ == Phase::kExited) return;
  CheckPrepared();
  if (phase_ != Phase::kOpening) return;
  const std::optional<int> rank = membership_.RankOf(peer);
  if (!rank) return;
  missing_since_.erase(peer);
  // What was said on an earlier connection may be lost.
  SendToPeer(peer, FrameKind::kOpen, EncodeHolding(opening_->own()));
  if (opening_->told()) SendToPeer(peer, FrameKind::kOpened);
  if (fetching_from_ == rank) Fetch(*rank);
  AdvanceOpening();
}

void LearnerLoop::Impl::OnPeerLost(const LearnerId& peer, const PeerLoss& loss) {
  if (phase_ == Phase::kExited) return;
  if (proposal_ && proposal_->membership.RankOf(peer)) {
    for (const Member& member : proposal_->membership.members) {
      if (member.id == peer) parts_.transport->Connect(member);
    }
  }
  const std::optional<int> rank = membership_.RankOf(peer);
  if (!rank) return;
  switch (phase_) {
    case Phase::kOpening:
      if (loss.violation) return StopOnViolation(LearnerId(peer), loss.reason);
      // It may not have noticed yet that the connection it had with us was over.
      missing_since_[peer] = parts_.loop.Now() - options_.opening_timeout + kReconnectMost;
      parts_.transport->Connect(membership_.members[static_cast<std::size_t>(*rank)]);
      return OnLostWhileRestoring(*rank);
    case Phase::kTicking:
    case Phase::kDraining:
    case Phase::kFinishing:
      return OnLoss({.accused = {peer}, .violation = loss.violation, .cause = loss.reason});
    default:
      return;
  }
}

MutableBytes LearnerLoop::Impl::PlaceFor(const LearnerId& peer, const FrameHeader& header,
                                         std::size_t bytes) {
  if (phase_ != Phase::kTicking || plan_.kind != TickKind::kTrain) return {};
  const std::optional<int> rank = membership_.RankOf(peer);
  return rank ? reduction_.PlaceFor(*rank, header, bytes) : MutableBytes{};
}

void LearnerLoop::Impl::OnFrame(const LearnerId& peer, Frame frame) {
  figures_.bytes_received += frame.payload.view.size();
  Take(peer, std::move(frame));
}

void LearnerLoop::Impl::Take(const LearnerId& peer, Frame frame) {
  if (phase_ == Phase::kExited) return;
  const MembershipId id = frame.header.membership;
  if (proposal_ && id == proposal_->membership.id &&
      (membership_.id != proposal_->replaces || phase_ == Phase::kStopped)) {
    // A member of it has switched: for those who do not work in the membership that it replaces,
    // this is the announcement.
    Hold(peer, std::move(frame));
    return Enter(Membership(proposal_->membership));
  }
  if (phase_ == Phase::kReleased && frame.header.kind == FrameKind::kOpened && id >= newest_->id) {
    // All members of the next membership hold the state.
    phase_ = Phase::kIdle;
    return LeaveWhenFree();
  }
  const MembershipId known = newest_ ? newest_->id : MembershipId{};
  if (id > known || pending_ || held_are_due_) {
    Hold(peer, std::move(frame));
  } else if (id == membership_.id) {
    Deliver(peer, frame);
  }
}

void LearnerLoop::Impl::Hold(const LearnerId& peer, Frame frame) {
  const bool to_come = !newest_ || frame.header.membership > newest_->id;
  if (held_.Hold(Shared(peer), std::move(frame), to_come)) return;
  const PeerLoss loss{.reason = "it sends more ahead than it can have to say", .violation = true};
  if (membership_.RankOf(peer)) {
    return OnLoss({.accused = {peer}, .violation = true, .cause = loss.reason});
  }
  const LearnerId lost = peer;  // the transport may have lent it with the connection
  parts_.transport->Disconnect(lost);
  OnPeerLost(lost, loss);
}

// Not within this call: what is held may lead on to the next membership.
void LearnerLoop::Impl::DeliverHeldSoon() {
  if (std::exchange(held_are_due_, true)) return;
  After(Duration::zero(), [this] {
    held_are_due_ = false;
    AdvanceOpening();
    DeliverHeld();
  });
}

void LearnerLoop::Impl::DeliverHeld() {
  const MembershipId known = newest_->id;
  // Some are held again, and a tick that they complete delivers those.
  std::vector<HeldFrames::Held> due = held_.TakeAll();
  for (HeldFrames::Held& held : due) {
    if (held.frame.header.membership < known) continue;
    Take(*held.peer, std::move(held.frame));
  }
  held_.GiveBack(std::move(due));
}

void LearnerLoop::Impl::Deliver(const LearnerId& peer, const Frame& frame) {
  const std::optional<int> rank = membership_.RankOf(peer);
  if (!rank) return;
  switch (frame.header.kind) {
    case FrameKind::kOpen: {
      if (phase_ != Phase::kOpening) return;
      const Result<Holding> holding =
          DecodeHolding(frame.payload.view, schedule_.total_ticks(),
                        split_.bitwise() ? schedule_.spec().logical_shards : 0);
      if (!holding) return StopOnViolation(peer, holding.error().message);
      opening_->OnOpen(*rank, *holding);
      if (restoring_) restoring_->heard = parts_.loop.Now();
      return AdvanceOpening();
    }
    case FrameKind::kOpened:
      if (phase_ != Phase::kOpening) return;
      opening_->OnOpened(*rank);
      return AdvanceOpening();
    case FrameKind::kStateRequest:
      return phase_ == Phase::kOpening && frame.header.node != kLastOfBatch ? ServeState(*rank)
                                                                            : ServeNext(*rank);
    case FrameKind::kState:
      if (following_) return OnFollowedState(*rank, frame);
      // Who follows is sent the state when the others begin.
      if (phase_ == Phase::kOpening && this->rank() != 0) return Hold(peer, frame);
      return OnStateFrame(*rank, frame);
    case FrameKind::kRestore:
      return OnRestoreFrame(*rank, frame);
    case FrameKind::kPart:
      return OnPartFrame(*rank, frame);
    case FrameKind::kPartTaken:
      return OnPartTaken(*rank);
    case FrameKind::kSliceFailed:
      return OnSliceFailed(peer, frame);
    case FrameKind::kAbort:
      return OnLoss({.cause = peer.name + " gave up"});
    case FrameKind::kFinished: {
      if (*rank != 0) return;
      const auto text = frame.payload.view;
      if (phase_ == Phase::kFinishing) {
        return Complete({reinterpret_cast<const char*>(text.data()), text.size()});
      }
      if (phase_ == Phase::kDraining) {
        return Exit({.reason = LeftReason::kDrained, .message = "left with a checkpoint"});
      }
      // It is at its end already.
      if (IsMember()) Hold(peer, frame);
      return;
    }
    case FrameKind::kNode:
    case FrameKind::kRoot:
    case FrameKind::kBuffers:
    case FrameKind::kTrailer:
      if (!IsMember()) return;
      if (phase_ == Phase::kOpening || frame.header.tick > applied_ || committing_) {
        // Others are ahead, by one tick at most, since they need this learner's trailer for the
        // next; if it follows, by some more.
        Hold(peer, frame);
        if (phase_ == Phase::kTicking) CommitWhenComplete();
      } else if (!in_step_[static_cast<std::size_t>(*rank)] &&
                 frame.header.kind == FrameKind::kTrailer) {
        OnFollowerTrailer(*rank, frame);
      } else if (frame.header.tick == applied_) {
        OnTickFrame(*rank, frame);
      }
      return;
  }
}

void LearnerLoop::Impl::OnLoss(Loss loss) {
  if (phase_ == Phase::kDraining || phase_ == Phase::kFinishing) {
    // Who writes is needed; the others may go when their part is done.
    if (rank() != 0 && std::ranges::contains(loss.accused, member(0))) Stop(std::move(loss));
    return;
  }
  if (!IsMember()) return;
  if (!committing_) return Stop(std::move(loss));
  if (!loss_in_commit_) {
    loss_in_commit_ = std::move(loss);
  } else {
    std::ranges::copy(loss.accused, std::back_inserter(loss_in_commit_->accused));
  }
}

void LearnerLoop::Impl::Stop(Loss loss) {
  log::Warning("stopped",
               {{"membership", ToString(membership_.id)},
                {"tick", applied_},
                {"lost", loss.accused.empty() ? std::string() : loss.accused.front().name},
                {"cause", loss.cause}});
  if (phase_ == Phase::kTicking) ++figures_.ticks_given_up;
  const bool writes_pending = phase_ == Phase::kDraining || phase_ == Phase::kFinishing;
  phase_ = Phase::kStopped;
  GiveUpTick();
  EndFollowing();
  serving_.clear();
  opening_.reset();
  receiver_.reset();
  restoring_.reset();
  fetching_from_.reset();
  opened_reported_ = false;
  if (!writes_pending) SendToMembers(FrameKind::kAbort);
  // Of a drain, the coordinator knows the empty membership as the newest.
  lost_ = Lost{.membership = newest_->id,
               .tick = applied_,
               .accused = std::move(loss.accused),
               .violation = loss.violation,
               .cause = std::move(loss.cause)};
  Tell(*lost_);
  if (done()) PollFinal();
}

void LearnerLoop::Impl::GiveUpTick() {
  if (!computing_ || std::exchange(giving_up_, true)) return;
  parts_.compute.AbandonTick(Guarded<TickOutput>([this](const TickOutput& rest) {
    computing_ = giving_up_ = false;
    Keep(rest);
    if (pending_) Enter(*std::exchange(pending_, std::nullopt));
  }));
}

// ---- Proposals ----

void LearnerLoop::Impl::Propose(Membership membership, std::optional<MembershipId> replaces) {
  if (newest_ && membership.id <= newest_->id) return;
  if (!membership.RankOf(options_.self)) return;
  if (announcement_ && announcement_->id < membership.id) announcement_.reset();
  proposal_ = Proposal{.membership = std::move(membership), .replaces = replaces};
  DropConnections();
  ConnectTo(proposal_->membership);
  CheckPrepared();
  // It may have held back for a follower, and somebody leaves.
  if (phase_ == Phase::kTicking && !following_ && !pending_) CommitWhenComplete();
}

void LearnerLoop::Impl::CheckPrepared() {
  if (!proposal_ || proposal_->prepared) return;
  const bool connected =
      std::ranges::all_of(proposal_->membership.members, [&](const Member& member) {
        return member.id == options_.self || parts_.transport->Connected(member.id);
      });
  if (!connected) return;
  proposal_->prepared = true;
  Tell(Prepared{proposal_->membership.id});
}

// ---- Entering ----

void LearnerLoop::Impl::Enter(Membership membership, std::vector<Member> before) {
  if (newest_ && membership.id <= newest_->id) return;
  if (pending_ && membership.id <= pending_->id) return;
  GiveUpTick();
  if (!committing_) EndFollowing();
  if (committing_ || loading_ || giving_up_ || following_) {
    // What it holds is changing, and is to be told to the others as it will be.
    pending_ = std::move(membership);
    if (parts_.transport != nullptr) ConnectTo(*pending_);
    return;
  }
  pending_.reset();
  current_ = !before.empty();
  if (!current_) ++recoveries_;
  before_ = std::move(before);
  membership_ = std::move(membership);
  newest_ = membership_;
  phase_ = Phase::kOpening;
  announcement_.reset();
  lost_.reset();
  loss_in_commit_.reset();
  receiver_.reset();
  restoring_.reset();
  parts_over_ = false;
  fetching_from_.reset();
  opened_reported_ = false;
  // Not anew: where memberships change often, none would last until a checkpoint is due.
  if (!last_save_) last_save_ = parts_.loop.Now();
  if (proposal_ && proposal_->membership.id <= membership_.id) proposal_.reset();
  log::Info("entered", {{"membership", ToString(membership_.id)},
                        {"rank", rank()},
                        {"learners", membership_.learners()},
                        {"tick", applied_}});
  Tell(Entered{.membership = membership_, .applied_ticks = applied_});

  in_step_.clear();
  serving_.clear();
  if (!split_.bitwise()) ForgetTick();  // another number of ranks cuts the samples otherwise
  opening_.emplace(membership_.world_size(), rank(), holding());
  missing_since_.clear();
  if (parts_.transport != nullptr) {
    DropConnections();
    ConnectTo(membership_);
    for (const Member& member : membership_.members) {
      if (member.id == options_.self) continue;
      if (parts_.transport->Connected(member.id)) {
        SendToPeer(member.id, FrameKind::kOpen, EncodeHolding(opening_->own()));
      } else {
        missing_since_.emplace(member.id, parts_.loop.Now());
      }
    }
    CheckOpening();
  }
  DeliverHeldSoon();
}

void LearnerLoop::Impl::SwitchTo(const Membership& membership) {
  if (membership.members.empty() || !membership.RankOf(options_.self)) return Release(membership);
  // Who follows does not hold the state of this boundary.
  if (following_) return Enter(membership);
  // Nor does another follower, for which those who leave need not wait. They may have to for those
  // of the boundary before.
  std::vector<Member> before = before_;
  for (std::size_t rank = 0; rank < in_step_.size(); ++rank) {
    const Member& member = membership_.members[rank];
    if (in_step_[rank] || !membership.RankOf(member.id)) before.push_back(member);
  }
  Enter(membership, std::move(before));
}

// The next membership does not name this learner.
void LearnerLoop::Impl::Release(const Membership& membership) {
  EndFollowing();
  newest_ = membership;
  opened_reported_ = false;
  announcement_.reset();
  if (proposal_ && proposal_->membership.id <= membership.id) proposal_.reset();
  Tell(Entered{.membership = membership, .applied_ticks = state_ticks()});
  if (membership.members.empty()) return Drain();
  log::Info("released", {{"membership", ToString(membership.id)}, {"tick", applied_}});
  phase_ = Phase::kReleased;
  DeliverHeldSoon();
}

// ---- The opening ----

void LearnerLoop::Impl::CheckOpening() {
  if (phase_ != Phase::kOpening) return;
  std::vector<LearnerId> absent;
  for (const auto& [peer, since] : missing_since_) {
    if (parts_.loop.Now() - since >= options_.opening_timeout) absent.push_back(peer);
  }
  if (!absent.empty()) return Stop({.accused = std::move(absent), .cause = "no connection"});
  After(kOpeningCheck, [this, id = membership_.id] {
    if (membership_.id == id) CheckOpening();
  });
}

void LearnerLoop::Impl::AdvanceOpening() {
  if (phase_ != Phase::kOpening || loading_) return;
  if (restoring_) return LoadWhenWhole();
  switch (opening_->next()) {
    case Opening::Next::kWait:
      return;
    case Opening::Next::kRestore:
      return LookForCheckpoint();
    case Opening::Next::kFetch:
      if (fetching_from_ != opening_->source()) Fetch(opening_->source());
      return;
    case Opening::Next::kHold:
      opening_->SetTold();
      SendToMembers(FrameKind::kOpened);
      return AdvanceOpening();
    case Opening::Next::kBegin:
      // Somebody who is not connected may not have heard that this one is ready, and is told when
      // it is: nothing is said of that any more once ticks have begun.
      if (missing_since_.empty()) BeginTicking();
      return;
  }
}

void LearnerLoop::Impl::Fetch(int source) {
  fetching_from_ = source;
  receiver_.reset();
  SendToPeer(member(source), FrameKind::kStateRequest);
}

void LearnerLoop::Impl::AskForMoreState(int source) {
  Send(member(source), {.header = {.kind = FrameKind::kStateRequest,
                                   .membership = membership_.id,
                                   .tick = applied_,
                                   .node = kLastOfBatch},
                        .payload = {}});
}

void LearnerLoop::Impl::ServeState(int to) {
  if (!has_state_) return;
  parts_.compute.CopyState(
      {}, Guarded<Result<std::shared_ptr<const StateCopy>>>(
              [this, to, id = membership_.id,
               applied = applied_](const Result<std::shared_ptr<const StateCopy>>& state) {
                if (!state) return Fail(state.error());
                if (phase_ != Phase::kOpening || membership_.id != id) return;
                serving_.insert_or_assign(to, StateSender(id, applied, *state));
                for (int i = 0; i < kBatchesUnderWay; ++i) ServeNext(to);
              }));
}

void LearnerLoop::Impl::OnStateFrame(int rank, const Frame& frame) {
  if (phase_ != Phase::kOpening || fetching_from_ != rank || loading_) return;
  if (!receiver_) {
    // What remains of an answer to an earlier request is passed over.
    if ((frame.header.node & kFirstStateFrame) == 0) return;
    fetched_ = std::make_shared<StateCopy>(StateCopy::Like(parts_.compute.state_shape()));
    receiver_.emplace(fetched_->view());
  }
  if (const Status status = receiver_->OnFrame(frame); !status) {
    return StopOnViolation(member(rank), status.error().message);
  }
  if ((frame.header.node & kLastOfBatch) != 0) AskForMoreState(rank);
  if (!receiver_->done()) return;
  if (receiver_->applied_ticks() > schedule_.total_ticks()) {
    return StopOnViolation(member(rank), "a state of a tick that the job has not");
  }
  const std::optional<Holding>& told = opening_->holding(rank);
  Load(std::exchange(fetched_, nullptr), {.has_state = true,
                                          .applied_ticks = receiver_->applied_ticks(),
                                          .lineage = told->lineage,
                                          .current = current_,
                                          .evaluation = told->evaluation,
                                          .last_line = told->last_line});
  receiver_.reset();
}

void LearnerLoop::Impl::Load(std::shared_ptr<const StateCopy> state, Holding holding) {
  loading_ = true;
  parts_.compute.LoadState(std::move(state), Guarded<Status>([this, holding](Status status) {
                             loading_ = false;
                             if (!status) return Fail(status.error());
                             has_state_ = true;
                             applied_ = holding.applied_ticks;
                             NoteWish(applied_);
                             lineage_ = holding.lineage;
                             applied_most_ = std::max(applied_most_, applied_);
                             ForgetTick();
                             metrics_.Restart(holding.evaluation);
                             last_line_ = holding.last_line;
                             fetching_from_.reset();
                             if (pending_) return Enter(*std::exchange(pending_, std::nullopt));
                             if (phase_ != Phase::kOpening) return;
                             opening_->SetOwn(holding);
                             // The others may have waited for rank 0 to have one at all.
                             SendToMembers(FrameKind::kOpen, EncodeHolding(holding));
                             AdvanceOpening();
                           }));
}

}  // namespace pliant
