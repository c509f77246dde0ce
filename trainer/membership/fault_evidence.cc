#include "trainer/membership/fault_evidence.h"

#include <algorithm>
#include <utility>

namespace pliant {
namespace {

// How long a break of a link counts, so that a fault every few minutes accumulates.
constexpr Duration kBreakMemory = std::chrono::hours(1);
// How long a link that kept breaking counts as broken.
constexpr Duration kLinkMemory = std::chrono::seconds(60);
// Losses of a learner's connections closer together than this are one event.
constexpr Duration kSameMoment = std::chrono::seconds(1);

bool HasGone(const Membership& membership, const Roster& roster) {
  return std::ranges::any_of(membership.members, [&](const Member& member) {
    const LearnerRecord* const learner = roster.Find(member.id);
    return learner != nullptr && learner->gone();
  });
}

}  // namespace

void FaultEvidence::MarkBroken(TimePoint now) {
  if (!broken_since_) broken_since_ = now;
}

bool FaultEvidence::Detect(const MembershipHistory& history,
                           const std::optional<Membership>& announced, const Roster& roster,
                           TimePoint now) {
  if (!history.current()) return false;
  // Out of contact for long while no tick advances: it is dead or hangs, and its peers, if it has
  // any, have not noticed. (If ticks are committed, only its connection to the coordinator is
  // broken.)
  const auto hangs = [&](const Member& member) {
    const LearnerRecord& learner = roster.At(member.id);
    return !learner.connected() &&
           now - std::max(learner.heard, history.advanced_at()) >= options_.max_silence;
  };
  if (HasGone(*history.current(), roster) || (announced && HasGone(*announced, roster)) ||
      std::ranges::any_of(history.current()->members, hangs)) {
    MarkBroken(now);
  }
  return broken_since_.has_value();
}

void FaultEvidence::Report(const LearnerId& reporter, const std::vector<LearnerId>& accused,
                           TimePoint now) {
  MarkBroken(now);
  accused_by_[reporter].insert(accused.begin(), accused.end());
}

std::set<LearnerId> FaultEvidence::Reset() {
  broken_since_.reset();
  std::set<LearnerId> reporters;
  for (const auto& [reporter, unused] : std::exchange(accused_by_, {})) reporters.insert(reporter);
  return reporters;
}

void FaultEvidence::OnAllOpened(const Membership& membership) {
  std::erase_if(broken_links_, [&](const auto& item) {
    const auto& [a, b] = item.first;
    return membership.RankOf(a).has_value() && membership.RankOf(b).has_value();
  });
}

std::optional<Recovery> FaultEvidence::Resolve(const std::vector<Member>& candidates,
                                               const Roster& roster,
                                               const MembershipHistory& history, TimePoint now) {
  auto survivors = Survivors(candidates, roster, history.StateIsSafe(roster), now);
  if (!survivors) return std::nullopt;
  const std::set<BrokenLink> broken = BrokenLinks(*survivors, now);
  std::set<BrokenLink> broke_lately;
  for (const auto& [link, unused] : breaks_) broke_lately.insert(link);
  const std::set<LearnerId> evicted =
      EvictionSet(*survivors, broken, broke_lately, history.state_holders());
  std::erase_if(*survivors, [&](const Member& member) { return evicted.contains(member.id); });
  // Ranks join and leave together, even if some of them are lost, unless the remaining ranks of
  // such learners are the only ones that hold the state.
  std::vector<Member> whole = *survivors;
  roster.RemoveIncompleteLearners(whole);
  const bool hold_the_state = std::ranges::any_of(
      whole, [&](const Member& member) { return history.HasOpened(member.id); });
  return Recovery{.survivors = hold_the_state ? std::move(whole) : *std::move(survivors),
                  .evicted = {evicted.begin(), evicted.end()}};
}

std::optional<std::vector<Member>> FaultEvidence::Survivors(const std::vector<Member>& candidates,
                                                            const Roster& roster,
                                                            bool state_is_safe,
                                                            TimePoint now) const {
  std::set<LearnerId> accused;
  for (const auto& [reporter, by_reporter] : accused_by_) {
    accused.insert(by_reporter.begin(), by_reporter.end());
  }
  std::vector<Member> survivors;
  bool settled = true;
  bool all_reported = true;
  for (const Member& member : candidates) {
    const LearnerRecord* const learner = roster.Find(member.id);
    const bool is_accused = accused.contains(member.id);
    if (learner != nullptr && learner->connected()) {
      // It must send a message after the break; if it never does, its connection is closed for
      // silence.
      if (is_accused && learner->heard <= *broken_since_) settled = false;
      all_reported &= accused_by_.contains(member.id);
      survivors.push_back(member);
      continue;
    }
    // Peers and coordinator lost it together: the process died, not one link. If it is alive, it
    // joins again.
    if (state_is_safe && is_accused && learner != nullptr &&
        learner->connection_changed_at + kSameMoment >= *broken_since_) {
      continue;
    }
    const Duration grace = is_accused ? options_.accused_grace : options_.reconnect_grace;
    // Counts from the end of its connection or, if that ended long ago, from the loss: it may be
    // dialing.
    const TimePoint from =
        learner == nullptr ? started_ : std::max(learner->connection_changed_at, *broken_since_);
    if (now - from < grace) settled = false;
  }
  if (!all_reported && now - *broken_since_ < options_.accusations_settle) settled = false;
  if (!settled) return std::nullopt;
  return survivors;
}

std::set<BrokenLink> FaultEvidence::BrokenLinks(const std::vector<Member>& survivors,
                                                TimePoint now) {
  const auto survives = [&](const LearnerId& id) {
    return std::ranges::contains(survivors, id, &Member::id);
  };
  std::set<BrokenLink> lost;  // both ends may report it
  for (const auto& [reporter, by_reporter] : accused_by_) {
    for (const LearnerId& other : by_reporter) {
      if (survives(reporter) && survives(other)) lost.insert(LinkOf(reporter, other));
    }
  }
  // A link that broke is tried once more, unless it keeps breaking.
  std::erase_if(breaks_,
                [&](const auto& item) { return now - item.second.back() >= kBreakMemory; });
  for (const BrokenLink& link : lost) {
    std::vector<TimePoint>& breaks = breaks_[link];
    breaks.push_back(now);
    if (KeepsBreaking(breaks)) broken_links_[link] = now;
  }
  // Include links from earlier attempts: each attempt reveals only part of a partition.
  std::erase_if(broken_links_, [&](const auto& item) { return now - item.second >= kLinkMemory; });
  std::set<BrokenLink> broken;
  for (const auto& [link, since] : broken_links_) {
    if (survives(link.first) && survives(link.second)) broken.insert(link);
  }
  return broken;
}

}  // namespace pliant
