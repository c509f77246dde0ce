#include "trainer/membership/membership_history.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;

class MembershipHistoryTest : public testing::Test {
 protected:
  void Enter(std::uint64_t counter, const std::string& names, const std::string& opened = {}) {
    history_.MakeCurrent(MembershipOf({1, counter}, names), false, TimePoint{} + 1s);
    for (const char name : opened) history_.AddOpened(Id(name), counter);
    if (history_.training() && history_.AllOpened()) history_.DropSuperseded();
  }
  std::string Candidates(const std::optional<Membership>& announced = std::nullopt) const {
    return Names(history_.Candidates(roster_, announced));
  }
  std::string Holders() const {
    std::string names;
    for (const LearnerId& id : history_.state_holders()) names += NameOf(id);
    return names;
  }

  MembershipHistory history_;
  Roster roster_ = RosterOf("abcdef");
};

TEST_F(MembershipHistoryTest, CandidatesAreOfTheNewestMembershipsFirst) {
  Enter(1, "ab", "ab");
  Enter(2, "bc");
  Enter(3, "cd");
  EXPECT_EQ(Candidates(), "cdba");
  EXPECT_EQ(Candidates(MembershipOf({1, 4}, "de")), "cdeba")
      << "the switch may already have happened";
  roster_.SetLeft(Id('b'), LeftReason::kFailed);
  EXPECT_EQ(Candidates(), "cda");
  Enter(4, "cd", "cd");
  EXPECT_EQ(Candidates(), "cd") << "all hold the state";
}

TEST_F(MembershipHistoryTest, ObservesOlderMembershipsWhileTheyMayBeNeeded) {
  Enter(5, "c");
  history_.Observe(MembershipOf({1, 3}, "ab"));
  history_.Observe(MembershipOf({1, 3}, "ab"));
  history_.Observe(MembershipOf({1, 2}, "d"));
  history_.Observe(MembershipOf({1, 5}, "e"));
  EXPECT_EQ(Candidates(), "cabd");
  EXPECT_TRUE(history_.Contains(Id('d')));
  EXPECT_FALSE(history_.IsMember(Id('d')));
  EXPECT_FALSE(history_.Contains(Id('e')));
  Enter(6, "c", "c");
  history_.Observe(MembershipOf({1, 4}, "ab"));
  EXPECT_EQ(Candidates(), "c") << "all hold the state";
}

TEST_F(MembershipHistoryTest, HoldersAreThoseWhoOpened) {
  Enter(1, "ab", "ab");
  EXPECT_EQ(Holders(), "ab");
  Enter(2, "abc", "a");
  Enter(3, "abcd");
  EXPECT_EQ(Holders(), "ab") << "b may lack a tick";
  Enter(4, "acd", "c");
  EXPECT_EQ(Holders(), "abc");
  Enter(5, "cd", "cd");
  EXPECT_EQ(Holders(), "cd");
}

TEST_F(MembershipHistoryTest, TheStateIsSafeWithAConnectedMemberThatOpened) {
  Enter(1, "ab", "ab");
  EXPECT_TRUE(history_.StateIsSafe(roster_));
  roster_.Disconnect(Id('a'), TimePoint{});
  EXPECT_TRUE(history_.StateIsSafe(roster_));
  Enter(2, "ab", "a");
  EXPECT_FALSE(history_.StateIsSafe(roster_));
}

TEST_F(MembershipHistoryTest, OpensWithThoseWhoCatchUp) {
  Enter(1, "abc", "a");
  EXPECT_FALSE(history_.AllOpenedOrCatchUp());
  for (const char name : {'b', 'c'})
    history_.OnProgress(Id(name), {.following = true}, TimePoint{});
  EXPECT_TRUE(history_.AllOpenedOrCatchUp());
  EXPECT_FALSE(history_.AllOpened());
  history_.OnProgress(Id('b'), {.following = false}, TimePoint{});
  EXPECT_FALSE(history_.AllOpenedOrCatchUp());
}

TEST_F(MembershipHistoryTest, TellsWhoWasAMemberBefore) {
  Enter(1, "ab", "ab");
  Enter(2, "bc");
  EXPECT_TRUE(history_.AddOpened(Id('b'), 1));
  EXPECT_FALSE(history_.AddOpened(Id('c'), 1));
}

TEST_F(MembershipHistoryTest, KnowsWhenTrainingAdvanced) {
  Enter(1, "ab");
  EXPECT_EQ(history_.advanced_at(), TimePoint{} + 1s);
  history_.OnProgress(Id('a'), {.tick = 4}, TimePoint{} + 5s);
  history_.OnProgress(Id('b'), {.tick = 3}, TimePoint{} + 6s);
  EXPECT_EQ(history_.furthest(), 4);
  EXPECT_EQ(history_.advanced_at(), TimePoint{} + 5s);
}

TEST_F(MembershipHistoryTest, IsDrainedWhenNobodyIsAtWork) {
  Enter(1, "abc", "abc");
  Enter(2, "");
  const auto drained = [&](Duration after) {
    return history_.Drained(roster_, 10s, TimePoint{} + after);
  };
  EXPECT_FALSE(history_.training());
  roster_.SetLeft(Id('a'), LeftReason::kDrained);
  roster_.SetPlan(PlanOf(2, "", "c", "b"));
  EXPECT_FALSE(drained(1h)) << "c still writes";
  roster_.Disconnect(Id('c'), TimePoint{} + 1s);
  EXPECT_FALSE(drained(10s)) << "it may reconnect";
  EXPECT_TRUE(drained(11s));
}

TEST_F(MembershipHistoryTest, RankZeroHoldsTheState) {
  const struct {
    const char* name;
    const char* current;
    const char* opened;
    const char* members;
    const char* want;
  } kCases[] = {
      {"it does", "abc", "abc", "abcd", "abcd"},
      {"it does not", "abc", "bc", "abcd", "bcad"},
      {"no member does", "abc", "", "abcd", "abcd"},
      {"all ranks of a learner do", "aAbB", "aAbB", "bBaA", "bBaA"},
      {"not all ranks of a learner do", "aAbB", "aAb", "bBaA", "aAbB"},
  };
  for (const auto& test : kCases) {
    history_ = {};
    Enter(1, test.current, test.opened);
    std::vector<Member> members = Members(test.members);
    history_.OrderStateHoldersFirst(members);
    EXPECT_EQ(Names(members), test.want) << test.name;
  }
}

// Pods come and go, and none of their memberships opens.
TEST_F(MembershipHistoryTest, SupersededMembershipsAreBounded) {
  Enter(1, "ab", "ab");
  for (std::uint64_t counter = 2; counter < 200; ++counter) {
    Membership next = MembershipOf({1, counter}, "bc");
    next.members.push_back({.id = {.name = std::to_string(counter)}, .address = "at"});
    const LearnerId newcomer = next.members.back().id;
    roster_.Add(newcomer, TimePoint{});
    history_.MakeCurrent(next, true, TimePoint{});
    history_.Trim(roster_);
    if (counter > 2) roster_.SetLeft(newcomer, LeftReason::kFailed);
  }
  EXPECT_FALSE(history_.Contains({.name = "100"}));
  EXPECT_TRUE(history_.Contains(Id('a'))) << "it may hold the state";
  EXPECT_TRUE(history_.Contains({.name = "2"}))
      << "so may a learner that is not known to have left";
  EXPECT_EQ(Candidates().substr(0, 2), "bc");
  EXPECT_TRUE(history_.AddOpened(Id('c'), 1)) << "the membership before is known";
}

}  // namespace
}  // namespace pliant
