#include "trainer/membership/membership_history.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pliant {
namespace {

constexpr std::size_t kMaxUntrimmed = 16;

bool Lists(const Membership& membership, const LearnerId& id) {
  return membership.RankOf(id).has_value();
}

}  // namespace

bool MembershipHistory::IsMember(const LearnerId& id) const {
  return current_ && Lists(*current_, id);
}

// ---- Events ----

void MembershipHistory::MakeCurrent(Membership membership, bool by_recovery, TimePoint now) {
  if (training()) superseded_.push_back(*std::move(current_));
  current_ = std::move(membership);
  opened_.clear();
  catching_up_.clear();
  by_recovery_ = by_recovery;
  furthest_ = 0;
  advanced_at_ = now;
}

void MembershipHistory::AddSuperseded(Membership membership) {
  superseded_.push_back(std::move(membership));
}

void MembershipHistory::Observe(const Membership& membership) {
  if (!current_ || membership.id >= current_->id || AllOpened()) return;
  if (std::ranges::contains(superseded_, membership.id, &Membership::id)) return;
  superseded_.push_front(membership);
}

bool MembershipHistory::AddOpened(const LearnerId& id, Tick applied_ticks) {
  furthest_ = std::max(furthest_, applied_ticks);
  opened_.insert(id);
  state_holders_.insert(id);
  return !superseded_.empty() && Lists(superseded_.back(), id);
}

void MembershipHistory::DropSuperseded() {
  superseded_.clear();
  state_holders_ = opened_;
  by_recovery_ = false;
}

void MembershipHistory::OnProgress(const LearnerId& id, const Progress& progress, TimePoint now) {
  if (furthest_ < progress.tick) {
    furthest_ = progress.tick;
    advanced_at_ = now;
  }
  if (progress.following) {
    catching_up_.insert(id);
  } else {
    catching_up_.erase(id);
  }
}

void MembershipHistory::Clear() {
  current_.reset();
  superseded_.clear();
  opened_.clear();
  catching_up_.clear();
  state_holders_.clear();
}

void MembershipHistory::Trim(const Roster& roster) {
  if (superseded_.size() <= kMaxUntrimmed) return;
  std::set<LearnerId> newer_ones;
  std::deque<Membership> kept;
  for (auto it = superseded_.rbegin(); it != superseded_.rend(); ++it) {
    bool brings_somebody = it == superseded_.rbegin();  // needed by AddOpened
    for (const Member& member : it->members) {
      const LearnerRecord* const learner = roster.Find(member.id);
      const bool gone = learner != nullptr && learner->gone();
      brings_somebody |= newer_ones.insert(member.id).second && !gone;
    }
    if (brings_somebody) kept.push_front(std::move(*it));
  }
  superseded_ = std::move(kept);
}

// ---- Questions ----

bool MembershipHistory::AllOpened() const {
  return current_ && std::ranges::all_of(current_->members, [&](const Member& member) {
           return opened_.contains(member.id);
         });
}

bool MembershipHistory::AllOpenedOrCatchUp() const {
  return current_ && std::ranges::all_of(current_->members, [&](const Member& member) {
           return opened_.contains(member.id) || catching_up_.contains(member.id);
         });
}

bool MembershipHistory::StateIsSafe(const Roster& roster) const {
  return std::ranges::any_of(opened_, [&](const LearnerId& id) { return roster.Connected(id); });
}

bool MembershipHistory::Drained(const Roster& roster, Duration max_silence, TimePoint now) const {
  return std::ranges::all_of(superseded_, [&](const Membership& membership) {
    return std::ranges::all_of(membership.members, [&](const Member& member) {
      const LearnerRecord* const learner = roster.Find(member.id);
      if (learner == nullptr || learner->gone()) return true;
      return !learner->connected() && now - learner->connection_changed_at >= max_silence;
    });
  });
}

bool MembershipHistory::Contains(const LearnerId& id) const {
  return IsMember(id) || std::ranges::any_of(superseded_, [&](const Membership& membership) {
           return Lists(membership, id);
         });
}

std::vector<Member> MembershipHistory::Candidates(
    const Roster& roster, const std::optional<Membership>& announced) const {
  std::vector<Member> candidates;
  const auto add = [&](const Membership& membership) {
    for (const Member& member : membership.members) {
      const LearnerRecord* const learner = roster.Find(member.id);
      if (learner != nullptr && learner->gone()) continue;
      if (!std::ranges::contains(candidates, member.id, &Member::id)) candidates.push_back(member);
    }
  };
  if (current_) add(*current_);
  if (announced) add(*announced);  // the switch may have taken place
  for (auto it = superseded_.rbegin(); it != superseded_.rend(); ++it) add(*it);
  return candidates;
}

void MembershipHistory::OrderStateHoldersFirst(std::vector<Member>& members) const {
  std::ranges::stable_partition(members, [&](const Member& member) {
    return IsMember(member.id) && std::ranges::all_of(current_->members, [&](const Member& rank) {
             return !SameLearner(rank.id, member.id) || opened_.contains(rank.id);
           });
  });
}

}  // namespace pliant
