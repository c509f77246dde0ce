#include "trainer/membership/roster.h"

#include <algorithm>

#include "base/check.h"

namespace pliant {

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

bool Roster::Wanted(const LearnerRecord& learner) const {
  return PlannedState(learner.id) == WantedState::kWanted && !learner.leaving;
}

LearnerRecord& Roster::At(const LearnerId& id, TimePoint now) {
  const auto [found, added] = learners_.try_emplace(id);
  LearnerRecord& learner = found->second;
  if (added) {
    learner.id = id;
    learner.since = now;
    learner.ended = PlannedState(id) == WantedState::kEnded;
    learner.listed = PlannedState(id).has_value();
  }
  return learner;
}

LearnerRecord* Roster::Find(const LearnerId& id) {
  const auto found = learners_.find(id);
  return found == learners_.end() ? nullptr : &found->second;
}

const LearnerRecord* Roster::Find(const LearnerId& id) const {
  const auto found = learners_.find(id);
  return found == learners_.end() ? nullptr : &found->second;
}

LearnerRecord* Roster::OfConnection(ConnectionId connection) {
  const auto found = of_connection_.find(connection);
  return found == of_connection_.end() ? nullptr : Find(found->second);
}

void Roster::Connect(LearnerRecord& learner, ConnectionId connection, TimePoint now) {
  CHECK(!learner.connected(), "the connection before it was dropped");
  learner.connection = connection;
  learner.since = now;
  learner.heard = now;
  of_connection_[connection] = learner.id;
}

void Roster::Disconnect(LearnerRecord& learner, TimePoint now) {
  of_connection_.erase(learner.connection);
  learner.connection = 0;
  learner.since = now;
}

bool Roster::Complete(const LearnerRecord& rank) const {
  LearnerId id = rank.id;
  for (id.local_rank = 0; id.local_rank < rank.ranks; ++id.local_rank) {
    const LearnerRecord* const other = Find(id);
    if (other == nullptr || !other->connected()) return false;
  }
  return true;
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

}  // namespace pliant
