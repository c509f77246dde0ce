#include "trainer/protocol/membership_view.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pliant {

void Loss::Merge(const Loss& other) {
  if (accused.empty() && !other.accused.empty()) cause = other.cause;
  std::ranges::copy_if(other.accused, std::back_inserter(accused),
                       [this](const LearnerId& id) { return !std::ranges::contains(accused, id); });
}

// ---- The current one ----

std::optional<int> MembershipView::RankOf(const LearnerId& learner) const {
  const auto found = ranks_.find(learner);
  if (found == ranks_.end()) return std::nullopt;
  return found->second;
}

void MembershipView::Enter(Membership membership, std::vector<Member> previous_members) {
  previous_members_ = std::move(previous_members);
  current_ = std::move(membership);
  ranks_.clear();
  for (const Member& member : current_.members) ranks_.emplace(member.id, std::ssize(ranks_));
  newest_ = current_;
  announcement_.reset();
  entry_.reset();
  loss_.reset();
  DropOldProposal(current_.id);
}

void MembershipView::Release(const Membership& membership) {
  newest_ = membership;
  announcement_.reset();
  DropOldProposal(membership.id);
}

void MembershipView::DropOldProposal(MembershipId entered) {
  if (proposal_ && proposal_->membership.id <= entered) proposal_.reset();
}

std::vector<Member> MembershipView::TakeLeavers(const std::vector<bool>& in_sync) {
  const auto is_behind = [&](const Member& member) {
    const std::optional<int> rank = RankOf(member.id);
    return rank && !in_sync[static_cast<std::size_t>(*rank)];
  };
  if (std::ranges::any_of(previous_members_, is_behind)) return {};
  std::vector<Member> leavers = std::exchange(previous_members_, {});
  // Members that stayed are not notified.
  std::erase_if(leavers, [&](const Member& member) { return RankOf(member.id); });
  return leavers;
}

std::vector<Member> MembershipView::MembersToAnswerFor(const Membership& next,
                                                       const std::vector<bool>& in_sync) const {
  std::vector<Member> members = previous_members_;
  for (std::size_t rank = 0; rank < in_sync.size(); ++rank) {
    const Member& member = current_.members[rank];
    if (in_sync[rank] || !next.RankOf(member.id)) members.push_back(member);
  }
  return members;
}

// ---- The proposed one ----

bool MembershipView::Propose(Membership membership, std::optional<MembershipId> replaces) {
  if (!IsNews(membership.id) || !membership.RankOf(self_)) return false;
  if (announcement_ && announcement_->id < membership.id) announcement_.reset();
  proposal_ = Proposal{.membership = std::move(membership), .replaces = replaces};
  return true;
}

bool MembershipView::Withdraw(MembershipId id) {
  if (!proposal_ || proposal_->membership.id != id) return false;
  proposal_.reset();
  return true;
}

bool MembershipView::SetPrepared() { return !std::exchange(proposal_->prepared, true); }

bool MembershipView::AllStay() const {
  return !proposal_ || std::ranges::all_of(current_.members, [&](const Member& member) {
    return proposal_->membership.RankOf(member.id).has_value();
  });
}

// ---- Events that wait ----

bool MembershipView::MayEnter(MembershipId id) const {
  return IsNews(id) && (!entry_ || id > entry_->id);
}

void MembershipView::PutOffLoss(Loss loss) {
  if (loss_) {
    loss_->Merge(loss);
  } else {
    loss_ = std::move(loss);
  }
}

// ---- Peers ----

MembershipView::Disposition MembershipView::DispositionOf(const FrameHeader& header,
                                                          Standing standing) const {
  const MembershipId id = header.membership;
  // A member of the proposed membership has switched. For a learner that does not work in the
  // replaced membership, this frame is the announcement.
  if (proposal_ && id == proposal_->membership.id &&
      (current_.id != proposal_->replaces || standing.stopped)) {
    return Disposition::kHoldAndEnter;
  }
  if (standing.released && header.kind == FrameKind::kOpened && id >= newest_->id) {
    return Disposition::kSetFree;
  }
  if (IsNews(id) && id > MembershipId{}) return Disposition::kHold;
  if (entry_ || standing.frames_wait) return Disposition::kHold;
  return id == current_.id ? Disposition::kDeliver : Disposition::kDrop;
}

std::set<LearnerId> MembershipView::NeededPeers() const {
  std::set<LearnerId> needed;
  const auto need = [&](const std::vector<Member>& members) {
    for (const Member& member : members) needed.insert(member.id);
  };
  need(current_.members);
  need(previous_members_);
  if (newest_) need(newest_->members);
  if (entry_) need(entry_->members);
  if (proposal_) need(proposal_->membership.members);
  return needed;
}

}  // namespace pliant
