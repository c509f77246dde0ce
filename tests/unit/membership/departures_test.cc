#include "trainer/membership/departures.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;

// For example "a at once, b at a boundary".
std::string Departures(const Roster& roster, const MembershipHistory& history,
                       const Proposer& proposer, Duration after = {}) {
  std::string text;
  for (const auto& [id, at_once] : FindDepartures(roster, history, proposer, TimePoint{} + after)) {
    if (!text.empty()) text += ", ";
    text += NameOf(id) + (at_once ? " at once" : " at a boundary");
  }
  return text;
}

TEST(FindDepartures, MembersLeaveAtABoundaryOthersAtOnce) {
  Roster roster = RosterOf("abcdef");
  MembershipHistory history;
  Proposer proposer{CoordinatorOptions{}};
  EXPECT_EQ(Departures(roster, history, proposer), "");
  history.MakeCurrent(MembershipOf({1, 1}, "ab"), false, TimePoint{});
  roster.SetPlan(PlanOf(2, "a", "bcdf", "e"));
  roster.Disconnect(Id('d'), TimePoint{});
  EXPECT_EQ(Departures(roster, history, proposer), "b at a boundary, c at once, f at once");
  history.MakeCurrent(MembershipOf({1, 2}, "a"), false, TimePoint{});
  EXPECT_EQ(Departures(roster, history, proposer), "b at a boundary, c at once, f at once")
      << "others may need its state";
  history.AddOpened(Id('a'), 5);
  history.DropSuperseded();
  EXPECT_EQ(Departures(roster, history, proposer), "b at once, c at once, f at once");
  roster.SetAppliedTicks(Id('b'), 6);
  EXPECT_EQ(Departures(roster, history, proposer), "c at once, f at once")
      << "b is ahead of the others";
}

TEST(FindDepartures, AProposedLearnerIsInUse) {
  Roster roster = RosterOf("ab");
  const MembershipHistory history;
  Proposer proposer{CoordinatorOptions{}};
  proposer.Begin(*proposer.Next(roster, history, TimePoint{}), {1, 1}, roster, history,
                 TimePoint{});
  roster.MarkLeaving(Id('b'));
  EXPECT_EQ(Departures(roster, history, proposer), "b at a boundary");
}

TEST(FindDepartures, ThePlanThatListsALearnerMayBeOnItsWay) {
  Roster roster = RosterOf("a");
  Connect(roster, "b", TimePoint{});
  const MembershipHistory history;
  const Proposer proposer{CoordinatorOptions{}};
  EXPECT_EQ(Departures(roster, history, proposer, 29s), "");
  EXPECT_EQ(Departures(roster, history, proposer, 30s), "b at once");
  Roster unplanned;
  Connect(unplanned, "b", TimePoint{});
  EXPECT_EQ(Departures(unplanned, history, proposer, 1h), "") << "there is no plan at all";
}

TEST(FindDepartures, RanksLeaveTogether) {
  Roster roster = RosterOf("aAbB", TimePoint{}, 2);
  roster.Disconnect(Id('A'), TimePoint{});
  roster.MarkLeaving(Id('a'));
  roster.Forget([](const LearnerId&) { return false; }, TimePoint{} + 11min);
  Connect(roster, "A", TimePoint{}, 2);
  EXPECT_EQ(Departures(roster, {}, Proposer{CoordinatorOptions{}}), "a at once, A at once")
      << "although its other rank has not asked to leave";
}

}  // namespace
}  // namespace pliant
