#include <optional>
#include <utility>

#include "trainer/runtime/learner_loop.h"

namespace pliant {

// ---- Connections ----

void LearnerLoop::OnPeerConnected(const LearnerId& peer) {
  tasks_.Handle([&] {
    CheckPrepared();
    const std::optional<int> rank = view_.RankOf(peer);
    if (opening_ && rank) opening_->OnConnected(*rank);
  });
}

void LearnerLoop::OnPeerLost(const LearnerId& peer, const PeerLoss& loss) {
  tasks_.Handle([&] { HandleLost(peer, loss); });
}

void LearnerLoop::HandleLost(const LearnerId& peer, const PeerLoss& loss) {
  if (const auto& proposal = view_.proposal()) {
    for (const Member& member : proposal->membership.members) {
      if (member.id == peer) peers_.Connect(member);
    }
  }
  const std::optional<int> rank = view_.RankOf(peer);
  if (!rank) return;
  switch (phase_) {
    case Phase::kOpening:
      if (!opening_->OnLost(*rank)) return moves_.Accuse(peer, loss.reason);
      return peers_.Connect(view_.current().members[static_cast<std::size_t>(*rank)]);
    case Phase::kTicking:
    case Phase::kDraining:
    case Phase::kFinishing:
      return moves_.Then(LossMove{{.accused = {peer}, .cause = loss.reason}});
    default:
      return;
  }
}

MutableBytes LearnerLoop::ReceiveBufferFor(const LearnerId& peer, const FrameHeader& header,
                                           std::size_t bytes) {
  if (phase_ != Phase::kTicking) return {};
  const std::optional<int> rank = view_.RankOf(peer);
  return rank ? ticks_.ReceiveBufferFor(*rank, header, bytes) : MutableBytes{};
}

void LearnerLoop::OnFrame(const LearnerId& peer, Frame frame) {
  stats_.bytes_received += frame.payload.view.size();
  tasks_.Handle([&] { Take(peer, std::move(frame)); });
}

void LearnerLoop::Take(const LearnerId& peer, Frame frame) {
  using Disposition = MembershipView::Disposition;
  switch (view_.DispositionOf(frame.header, {.stopped = phase_ == Phase::kStopped,
                                             .released = phase_ == Phase::kReleased,
                                             .frames_wait = early_due_})) {
    case Disposition::kDeliver:
      return Deliver(peer, frame);
    case Disposition::kHold:
      return Hold(peer, std::move(frame));
    case Disposition::kHoldAndEnter:
      Hold(peer, std::move(frame));
      return moves_.Then(EnterMove{view_.proposal()->membership});
    case Disposition::kSetFree:
      phase_ = Phase::kIdle;
      return LeaveWhenFree();
    case Disposition::kDrop:
      return;
  }
}

void LearnerLoop::Hold(const LearnerId& peer, Frame frame) {
  const bool to_come = view_.ComesEarly(frame.header);
  if (early_.Hold(peers_.Shared(peer), std::move(frame), to_come)) return;
  const PeerLoss loss{.reason = "it sent more early frames than the protocol allows"};
  if (view_.RankOf(peer)) return moves_.Then(LossMove{{.accused = {peer}, .cause = loss.reason}});
  const LearnerId lost = peer;  // a copy: `peer` may end with the connection
  peers_.Disconnect(lost);
  HandleLost(lost, loss);
}

// Not within this call: early frames may lead to the next membership.
void LearnerLoop::TakeEarlyFramesSoon() {
  if (std::exchange(early_due_, true)) return;
  tasks_.After(Duration::zero(), [this] {
    early_due_ = false;
    moves_.Then(SimpleMove::kAdvanceOpening);
    moves_.Then(SimpleMove::kTakeEarlyFrames);
  });
}

void LearnerLoop::Deliver(const LearnerId& peer, const Frame& frame) {
  const std::optional<int> rank = view_.RankOf(peer);
  if (!rank) return;
  switch (frame.header.kind) {
    case FrameKind::kOpen:
      if (!opening_) return;
      if (const Status status = opening_->OnOpenFrame(*rank, frame); !status) {
        moves_.Accuse(peer, status.error().message);
      }
      return;
    case FrameKind::kOpened:
      if (opening_) opening_->OnOpenedFrame(*rank);
      return;
    case FrameKind::kStateRequest:
      return opening_ && frame.header.node != kLastOfBatch
                 ? opening_->ServeState(*rank, state_.own.has_state, state_.applied())
                 : states_.SendNext(*rank);
    case FrameKind::kState:
      if (catching_up()) return training_->OnStateFrame(*rank, frame);
      // The others send the state as soon as they begin, also to a member that is still opening.
      if (opening_ && view_.rank() != 0) return Hold(peer, frame);
      if (opening_ && !loading_) opening_->OnStateFrame(*rank, frame);
      return;
    case FrameKind::kCommunicator:
      if (!training_) return;
      if (const Status status = carrier_.OnOffer(*rank, frame); !status)
        moves_.Then(
            LossMove{{.accused = {peer}, .cause = status.error().message}});  // after a commit
      return;
    case FrameKind::kSliceFailed:
      return checkpoints_.OnSliceFailed(peer, DecodeSliceFailure(frame));
    case FrameKind::kAbort:
      return moves_.Then(LossMove{{.cause = peer.name + " aborted the membership"}});
    case FrameKind::kFinished: {
      if (*rank != 0) return;
      const auto text = frame.payload.view;
      if (phase_ == Phase::kFinishing) {
        return Complete({reinterpret_cast<const char*>(text.data()), text.size()});
      }
      if (phase_ == Phase::kDraining) {
        return Exit({.reason = LeftReason::kDrained, .message = "left with a checkpoint"});
      }
      // Rank 0 is at the end already; this member will be.
      if (IsMember(phase_)) Hold(peer, frame);
      return;
    }
    case FrameKind::kNode:
    case FrameKind::kRoot:
    case FrameKind::kBuffers:
    case FrameKind::kTrailer:
      if (!IsMember(phase_)) return;
      if (phase_ == Phase::kOpening || frame.header.tick > state_.applied() ||
          training_->committing()) {
        // Others may be ahead: by at most one tick, since they need this learner's trailer for the
        // next; by more if it catches up.
        Hold(peer, frame);
        if (phase_ == Phase::kTicking) moves_.Then(SimpleMove::kCommit);
      } else {
        training_->OnTickFrame(*rank, frame);
      }
      return;
  }
}

}  // namespace pliant
