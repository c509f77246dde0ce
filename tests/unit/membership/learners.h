#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/membership/plan.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/types.h"

// Learners with names of one letter. With two ranks, "A" is the other rank of learner a.
namespace pliant {

inline LearnerId Id(char name) {
  const bool second = name >= 'A' && name <= 'Z';
  return {.name = std::string(1, second ? static_cast<char>(name - 'A' + 'a') : name),
          .pod_uid = "u",
          .local_rank = second ? 1 : 0};
}

inline std::string NameOf(const LearnerId& id) {
  const char name = id.name.front();
  return {id.local_rank == 0 ? name : static_cast<char>(name - 'a' + 'A')};
}

inline std::vector<Member> Members(const std::string& names) {
  std::vector<Member> members;
  for (const char name : names) members.push_back({.id = Id(name), .address = "at"});
  return members;
}

inline std::string Names(const std::vector<Member>& members) {
  std::string names;
  for (const Member& member : members) names += NameOf(member.id);
  return names;
}

inline Membership MembershipOf(MembershipId id, const std::string& names) {
  return {.id = id, .members = Members(names)};
}

inline Plan PlanOf(std::uint64_t sequence, const std::string& wanted,
                   const std::string& leaving = {}, const std::string& ended = {}) {
  Plan plan{.version = {1, sequence}};
  const auto list = [&](const std::string& names, WantedState state) {
    for (const char name : names) plan.learners.push_back({Id(name).name, "u", state});
  };
  list(wanted, WantedState::kWanted);
  list(leaving, WantedState::kLeaving);
  list(ended, WantedState::kEnded);
  return plan;
}

// Connects each of `names`; the connection's id is the letter.
inline void Connect(Roster& roster, const std::string& names, TimePoint now, int ranks = 1) {
  for (const char name : names) {
    roster.Connect(static_cast<ConnectionId>(name),
                   {.learner = Id(name), .ranks = ranks, .address = "at"}, now);
  }
}

// A roster with a plan that wants all of them.
inline Roster RosterOf(const std::string& names, TimePoint now = {}, int ranks = 1) {
  Roster roster;
  roster.SetPlan(PlanOf(1, names));
  Connect(roster, names, now, ranks);
  return roster;
}

}  // namespace pliant
