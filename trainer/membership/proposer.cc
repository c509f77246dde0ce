#include "trainer/membership/proposer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"

namespace pliant {
namespace {

// The minimum time to the next proposal after members of the current membership missed one.
constexpr Duration kMinPause = std::chrono::seconds(5);

std::vector<Member> Joiners(const Roster& roster, const MembershipHistory& history, TimePoint now) {
  std::vector<Member> joiners;
  for (const auto& [id, learner] : roster.learners()) {
    if (!learner.connected() || learner.gone() || history.IsMember(id)) continue;
    if (roster.Wanted(learner) && now >= learner.backoff_until && roster.Complete(learner)) {
      joiners.push_back({.id = id, .address = learner.address});
    }
  }
  return joiners;
}

int MaxRanks(const Roster& roster, const std::vector<Member>& joiners) {
  int ranks = 1;
  for (const Member& joiner : joiners) ranks = std::max(ranks, roster.At(joiner.id).ranks);
  return ranks;
}

}  // namespace

bool Proposer::Proposes(const LearnerId& id) const {
  return proposal_ && proposal_->membership.RankOf(id).has_value();
}

std::optional<Membership> Proposer::announced_membership() const {
  if (!announced()) return std::nullopt;
  return proposal_->membership;
}

std::optional<std::vector<MemberDisposition>> Proposer::Dispositions(const Roster& roster,
                                                                     const Membership& current,
                                                                     TimePoint now) const {
  std::vector<MemberDisposition> dispositions;
  std::vector<Member> whole;
  for (const Member& member : current.members) {
    const LearnerRecord& learner = roster.At(member.id);
    if (learner.connected()) {
      const bool stays = roster.Wanted(learner);
      dispositions.push_back(stays ? MemberDisposition::kStays : MemberDisposition::kLeaves);
      if (stays) whole.push_back(member);
    } else if (now - learner.connection_changed_at < options_.max_silence) {
      return std::nullopt;  // it may reconnect soon
    } else {
      dispositions.push_back(MemberDisposition::kAbsent);
    }
  }
  // A learner that has lost a rank, or loses one, leaves with all of them.
  roster.RemoveIncompleteLearners(whole);
  for (std::size_t rank = 0; rank < dispositions.size(); ++rank) {
    if (dispositions[rank] == MemberDisposition::kStays &&
        !std::ranges::contains(whole, current.members[rank])) {
      dispositions[rank] = MemberDisposition::kLeaves;
    }
  }
  return dispositions;
}

std::optional<Proposer::Draft> Proposer::Next(const Roster& roster,
                                              const MembershipHistory& history, TimePoint now) {
  if (!roster.plan() || now < propose_after_) return std::nullopt;
  const Membership current = history.training() ? *history.current() : Membership{};
  std::vector<MemberDisposition> dispositions;
  if (history.training()) {
    if (!history.AllOpenedOrCatchUp()) return std::nullopt;  // one change at a time
    auto known = Dispositions(roster, current, now);
    if (!known) return std::nullopt;
    dispositions = *std::move(known);
  } else if (!history.Drained(roster, options_.max_silence, now)) {
    return std::nullopt;  // the members that leave are writing a checkpoint
  }
  const std::vector<Member> joiners = Joiners(roster, history, now);
  Draft draft{.members = NextMembers(current, dispositions, joiners,
                                     options_.max_learners * MaxRanks(roster, joiners))};
  if (draft.members == current.members) {
    requested_.reset();
    return std::nullopt;
  }
  if (!requested_) requested_ = now;
  draft.somebody_leaves = std::ranges::any_of(dispositions, [](MemberDisposition disposition) {
    return disposition != MemberDisposition::kStays;
  });
  if (history.training() && !history.AllOpened()) {
    // Each membership restarts a transfer of the state. A leave does not wait for its end; a join
    // does, and so does the last member that holds the state.
    if (!draft.somebody_leaves) return std::nullopt;
    history.OrderStateHoldersFirst(draft.members);
    const bool held = draft.members.empty() ? history.StateIsSafe(roster)
                                            : history.HasOpened(draft.members.front().id);
    if (!held) return std::nullopt;
  }
  if (!draft.somebody_leaves && !roster.AllOfPlanConnected()) {
    // Learners that become ready shortly after each other join together.
    for (const Member& joiner : joiners) {
      const TimePoint ready_since = roster.At(joiner.id).connection_changed_at;
      if (now - ready_since < options_.join_settle) return std::nullopt;
    }
  }
  return draft;
}

const Proposal& Proposer::Begin(Draft draft, MembershipId id, const Roster& roster,
                                const MembershipHistory& history, TimePoint now) {
  CHECK(requested_.has_value(), "a proposal follows a request");
  Proposal proposal{.requested = *requested_,
                    .deadline = now + (draft.somebody_leaves ? options_.prepare_timeout_leave
                                                             : options_.prepare_timeout)};
  if (roster.plan()) proposal.reason = roster.plan()->reason;
  if (history.training()) {
    proposal.replaces = history.current()->id;
    // Its pod is evicted or deleted: that is no decision of the plan.
    for (const Member& member : history.current()->members) {
      if (roster.LeavesByItself(roster.At(member.id))) {
        proposal.reason = Format("learner {} leaves", member.id.name);
      }
    }
  }
  for (const Member& member : draft.members) {
    if (!roster.Wanted(roster.At(member.id))) proposal.leavers.insert(member.id);
  }
  proposal.membership = {.id = id, .members = std::move(draft.members)};
  return proposal_.emplace(std::move(proposal));
}

bool Proposer::OnPrepared(const LearnerId& id, MembershipId membership) {
  if (!Proposes(id) || proposal_->membership.id != membership) return false;
  proposal_->prepared.insert(id);
  return true;
}

Proposer::Check Proposer::CheckProposal(const Roster& roster, const MembershipHistory& history,
                                        TimePoint now) {
  std::vector<LearnerId> missing;
  for (const Member& member : proposal_->membership.members) {
    const LearnerRecord* const learner = roster.Find(member.id);
    const bool willing = learner != nullptr && learner->connected() && !learner->gone() &&
                         (roster.Wanted(*learner) || proposal_->leavers.contains(member.id));
    if (!willing) return {.verdict = Verdict::kWithdraw};
    if (!proposal_->prepared.contains(member.id)) missing.push_back(member.id);
  }
  if (missing.empty()) return {.verdict = Verdict::kAnnounce};
  if (now < proposal_->deadline) return {.verdict = Verdict::kWait};
  std::erase_if(missing, [&](const LearnerId& id) { return history.IsMember(id); });
  if (missing.empty()) propose_after_ = now + kMinPause;
  return {.verdict = Verdict::kWithdraw, .late = std::move(missing)};
}

std::optional<LearnerId> Proposer::Announce(const Roster& roster,
                                            const MembershipHistory& history) {
  // Rank 0, unless it cannot be reached: all members read an announcement from any member. One that
  // catches up has no trailer to announce it in.
  for (const Member& member : history.current()->members) {
    if (!roster.Connected(member.id) || !history.HasOpened(member.id)) continue;
    proposal_->announced_to = member.id;
    return member.id;
  }
  return std::nullopt;
}

}  // namespace pliant
