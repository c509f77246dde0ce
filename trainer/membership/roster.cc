#include "trainer/membership/roster.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/log.h"

namespace pliant {
namespace {

constexpr Duration kFirstBackoff = std::chrono::seconds(5);
// The maximum number of doublings: after missed proposals, and after evictions.
constexpr int kMaxBackoffDoublings = 5;
constexpr int kMaxQuarantineDoublings = 8;
// An eviction this long after the end of the last back-off counts as the first.
constexpr Duration kEvictionMemory = std::chrono::hours(1);
// The record of a learner that was away for longer than this is dropped.
constexpr Duration kForgetAfter = std::chrono::minutes(10);

}  // namespace

std::optional<WantedState> Roster::PlannedState(const LearnerId& id) const {
  const auto found = planned_.find({id.name, id.pod_uid});
  if (found == planned_.end()) return std::nullopt;
  return found->second;
}

void Roster::SetPlan(const Plan& plan) {
  plan_ = plan;
  planned_.clear();
  for (const PlannedLearner& planned : plan.learners) {
    planned_[{planned.name, planned.pod_uid}] = planned.state;
  }
  for (auto& [id, learner] : learners_) {
    learner.ended |= PlannedState(id) == WantedState::kEnded;
    learner.listed |= PlannedState(id).has_value();
  }
}

bool Roster::LeavesByItself(const LearnerRecord& learner) const {
  return PlannedState(learner.id) == WantedState::kWanted && learner.leaving;
}

bool Roster::Wanted(const LearnerRecord& learner) const {
  return PlannedState(learner.id) == WantedState::kWanted && !learner.leaving;
}

bool Roster::AllOfPlanConnected() const {
  if (!plan_) return false;
  return std::ranges::all_of(plan_->learners, [&](const PlannedLearner& planned) {
    if (planned.state == WantedState::kEnded) return true;
    return std::ranges::any_of(learners_, [&](const auto& item) {
      const LearnerRecord& learner = item.second;
      return learner.id.name == planned.name && learner.id.pod_uid == planned.pod_uid &&
             (learner.gone() || Complete(learner));
    });
  });
}

// ---- Questions ----

const LearnerRecord* Roster::Find(const LearnerId& id) const {
  const auto found = learners_.find(id);
  return found == learners_.end() ? nullptr : &found->second;
}

const LearnerRecord& Roster::At(const LearnerId& id) const {
  const LearnerRecord* const learner = Find(id);
  CHECK(learner != nullptr, "members and connected learners have a record");
  return *learner;
}

const LearnerRecord* Roster::OfConnection(ConnectionId connection) const {
  const auto found = of_connection_.find(connection);
  return found == of_connection_.end() ? nullptr : Find(found->second);
}

bool Roster::Connected(const LearnerId& id) const {
  const LearnerRecord* const learner = Find(id);
  return learner != nullptr && learner->connected();
}

bool Roster::Complete(const LearnerRecord& rank) const {
  LearnerId id = rank.id;
  for (id.local_rank = 0; id.local_rank < rank.ranks; ++id.local_rank) {
    if (!Connected(id)) return false;
  }
  return true;
}

void Roster::RemoveIncompleteLearners(std::vector<Member>& members) const {
  const auto learner_of = [](LearnerId id) {
    id.local_rank = 0;
    return id;
  };
  std::map<LearnerId, int> ranks_of;
  for (const Member& member : members) ++ranks_of[learner_of(member.id)];
  std::erase_if(members, [&](const Member& member) {
    return ranks_of.at(learner_of(member.id)) < At(member.id).ranks;
  });
}

// ---- Connections ----

void Roster::Add(const LearnerId& id, TimePoint now) {
  const auto [found, added] = learners_.try_emplace(id);
  if (!added) return;
  LearnerRecord& learner = found->second;
  learner.id = id;
  learner.connection_changed_at = now;
  learner.ended = PlannedState(id) == WantedState::kEnded;
  learner.listed = PlannedState(id).has_value();
}

std::vector<ConnectionId> Roster::Connect(ConnectionId connection, const Hello& hello,
                                          TimePoint now) {
  std::vector<ConnectionId> replaced;
  const auto disconnect = [&](LearnerRecord& learner) {
    if (!learner.connected()) return;
    replaced.push_back(learner.connection);
    Disconnect(learner.id, now);
  };
  // An earlier process of this pod has ended.
  for (auto& [id, other] : learners_) {
    if (id.name != hello.learner.name || id.pod_uid != hello.learner.pod_uid ||
        id.nonce == hello.learner.nonce) {
      continue;
    }
    other.ended = true;
    disconnect(other);
  }
  Add(hello.learner, now);
  LearnerRecord& learner = Mutable(hello.learner);
  disconnect(learner);  // it dialed again before the end of its old connection was noticed
  of_connection_[connection] = hello.learner;
  learner.connection = connection;
  learner.connection_changed_at = now;
  learner.heard = now;
  learner.address = hello.address;
  learner.fingerprint = hello.fingerprint;
  learner.applied_ticks = hello.applied_ticks;
  learner.ranks = hello.ranks;
  if (hello.leaving) MarkLeaving(hello.learner);
  learner.refused = false;
  if (hello.membership) SetEntered(hello.learner, hello.membership->id);
  // Messages sent on an earlier connection may not have arrived.
  learner.leave_now_sent = false;
  learner.leave_sent = false;
  return replaced;
}

void Roster::Disconnect(const LearnerId& id, TimePoint now) {
  LearnerRecord& learner = Mutable(id);
  of_connection_.erase(learner.connection);
  learner.connection = 0;
  learner.connection_changed_at = now;
}

void Roster::Refuse(const LearnerId& id, TimePoint now) {
  Add(id, now);
  Mutable(id).refused = true;
}

// ---- Messages of learners ----

void Roster::RecordHeard(const LearnerId& id, TimePoint now) { Mutable(id).heard = now; }

void Roster::SetEntered(const LearnerId& id, MembershipId membership) {
  LearnerRecord& learner = Mutable(id);
  learner.entered = std::max(learner.entered, membership);
}

void Roster::SetAppliedTicks(const LearnerId& id, Tick applied_ticks) {
  Mutable(id).applied_ticks = applied_ticks;
}

double Roster::LongestComputeSeconds(const Membership& membership) const {
  double longest = 0;
  for (const Member& member : membership.members) {
    const LearnerRecord* const learner = Find(member.id);
    if (learner == nullptr || !learner->times) continue;
    longest = std::max(longest, learner->times->compute_seconds);
  }
  return longest;
}

void Roster::SetWork(const LearnerId& id, std::uint64_t step,
                     const std::optional<TickTimes>& times) {
  LearnerRecord& learner = Mutable(id);
  learner.step = step;
  if (times) learner.times = times;
}

void Roster::ClearStep(const LearnerId& id) { Mutable(id).step.reset(); }

void Roster::SetLeft(const LearnerId& id, LeftReason reason) { Mutable(id).left = reason; }

void Roster::SetPrepared(const LearnerId& id) { Mutable(id).missed_proposals = 0; }

// ---- Decisions of the coordinator ----

void Roster::MarkLeaving(const LearnerId& id) {
  for (LearnerRecord* const rank : RanksOf(id)) rank->leaving = true;
}

void Roster::MarkLeaveSent(const LearnerId& id, bool at_once) {
  LearnerRecord& learner = Mutable(id);
  (at_once ? learner.leave_now_sent : learner.leave_sent) = true;
}

void Roster::BackOff(const LearnerId& id, TimePoint now) {
  const int doublings = std::min(Mutable(id).missed_proposals++, kMaxBackoffDoublings);
  HoldBack(id, kFirstBackoff * (1 << doublings), now);
}

void Roster::Quarantine(const LearnerId& id, TimePoint now) {
  LearnerRecord& learner = Mutable(id);
  if (now - learner.backoff_until >= kEvictionMemory) learner.evictions = 0;
  HoldBack(id, kFirstBackoff * (1 << std::min(learner.evictions++, kMaxQuarantineDoublings)), now);
}

void Roster::HoldBack(const LearnerId& id, Duration pause, TimePoint now) {
  for (LearnerRecord* const rank : RanksOf(id)) {
    rank->backoff_until = std::max(rank->backoff_until, now + pause);
  }
  log::Warning("learner backs off before it may join",
               {{"learner", id.name}, {"seconds", ToSeconds(pause)}});
}

void Roster::ClearBackoffs() {
  for (auto& [id, learner] : learners_) learner.backoff_until = {};
}

void Roster::Forget(const std::function<bool(const LearnerId&)>& in_use, TimePoint now) {
  std::erase_if(learners_, [&](const auto& item) {
    const LearnerRecord& learner = item.second;
    if (learner.connected() || in_use(learner.id)) return false;
    return learner.gone() || now - learner.connection_changed_at > kForgetAfter;
  });
}

LearnerRecord& Roster::Mutable(const LearnerId& id) {
  const auto found = learners_.find(id);
  CHECK(found != learners_.end(), "the learner has a record");
  return found->second;
}

std::vector<LearnerRecord*> Roster::RanksOf(const LearnerId& rank) {
  std::vector<LearnerRecord*> ranks;
  LearnerId first = rank;
  first.local_rank = 0;
  for (auto it = learners_.lower_bound(first);
       it != learners_.end() && SameLearner(it->first, rank); ++it) {
    ranks.push_back(&it->second);
  }
  return ranks;
}

}  // namespace pliant
