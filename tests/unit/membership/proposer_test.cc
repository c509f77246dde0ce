#include "trainer/membership/proposer.h"

#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Verdict = Proposer::Verdict;

constexpr TimePoint kNow = TimePoint{} + 100s;

class ProposerTest : public testing::Test {
 protected:
  void Enter(const std::string& names, const std::string& opened) {
    history_.MakeCurrent(MembershipOf({1, 1}, names), false, kNow);
    for (const char name : opened) history_.AddOpened(Id(name), 1);
  }
  // For example "abc", "abc, leaving", "nothing".
  std::string Next(TimePoint now = kNow) {
    const auto draft = proposer_.Next(roster_, history_, now);
    if (!draft) return "nothing";
    return Names(draft->members) + (draft->somebody_leaves ? ", leaving" : "");
  }
  const Proposal& Propose(TimePoint now = kNow) {
    return proposer_.Begin(proposer_.Next(roster_, history_, now).value(), {1, 2}, roster_,
                           history_, now);
  }
  void Prepare(const std::string& names) {
    for (const char name : names) EXPECT_TRUE(proposer_.OnPrepared(Id(name), {1, 2}));
  }
  Proposer::Check Check(Duration after = {}) {
    return proposer_.CheckProposal(roster_, history_, kNow + after);
  }

  Roster roster_ = RosterOf("abcd", kNow - 50s);
  MembershipHistory history_;
  Proposer proposer_{CoordinatorOptions{}};
};

TEST_F(ProposerTest, ProposesWhatThePlanWants) {
  const struct {
    const char* name;
    const char* current;  // empty: no learner trains
    const char* opened;
    const char* wanted;
    const char* leaving;
    const char* absent;
    Duration absent_for;
    const char* want;
  } kCases[] = {
      {"the first", "", "", "abc", "", "", 0s, "abc"},
      {"only connected learners", "", "", "abc", "", "b", 0s, "ac"},
      {"nothing new", "ab", "ab", "ab", "", "", 0s, "nothing"},
      {"a join", "ab", "ab", "abc", "", "", 0s, "abc"},
      {"a leave", "ab", "ab", "a", "b", "", 0s, "a, leaving"},
      {"both", "ab", "ab", "ac", "b", "", 0s, "ac, leaving"},
      {"all leave", "ab", "ab", "", "ab", "", 0s, ", leaving"},
      {"all leave, one joins: a bridge", "ab", "ab", "c", "ab", "", 0s, "ac, leaving"},
      {"a lost learner may come back", "ab", "ab", "abc", "", "b", 9s, "nothing"},
      {"a learner is lost", "ab", "ab", "abc", "", "b", 10s, "ac, leaving"},
      {"one change after the other", "ab", "a", "abc", "", "", 0s, "nothing"},
  };
  for (const auto& test : kCases) {
    history_ = {};
    roster_ = RosterOf("abcd", kNow - 50s);
    roster_.SetPlan(PlanOf(2, test.wanted, test.leaving));
    if (*test.current != '\0') Enter(test.current, test.opened);
    for (const char name : std::string(test.absent)) {
      roster_.Disconnect(Id(name), kNow - test.absent_for);
    }
    EXPECT_EQ(Next(), test.want) << test.name;
  }
}

TEST_F(ProposerTest, ProposesNothingWithoutAPlan) {
  roster_ = {};
  Connect(roster_, "ab", kNow - 50s);
  EXPECT_EQ(Next(), "nothing");
}

TEST_F(ProposerTest, WaitsForOthersToBecomeReady) {
  roster_ = RosterOf("ab", kNow);
  roster_.SetPlan(PlanOf(2, "abc"));
  EXPECT_EQ(Next(kNow + 499ms), "nothing");
  EXPECT_EQ(Next(kNow + 500ms), "ab");
  roster_.SetPlan(PlanOf(3, "ab"));
  EXPECT_EQ(Next(kNow), "ab") << "all wanted learners are connected";
}

TEST_F(ProposerTest, ALearnerThatBacksOffDoesNotJoin) {
  roster_.BackOff(Id('b'), kNow);
  EXPECT_EQ(Next(kNow), "acd");
  EXPECT_EQ(Next(kNow + 5s), "abcd");
}

TEST_F(ProposerTest, ALeaveDoesNotWaitForATransfer) {
  Enter("abc", "ab");
  history_.OnProgress(Id('c'), {.following = true}, kNow);
  roster_.SetPlan(PlanOf(2, "abcd"));
  EXPECT_EQ(Next(), "nothing") << "a join waits";
  roster_.SetPlan(PlanOf(3, "bcd", "a"));
  EXPECT_EQ(Next(), "bcd, leaving");
  roster_.SetPlan(PlanOf(4, "cd", "ab"));
  EXPECT_EQ(Next(), "nothing") << "the last holders of the state wait, too";
}

TEST_F(ProposerTest, WaitsForTheLastCheckpoint) {
  Enter("ab", "ab");
  history_.DropSuperseded();
  history_.MakeCurrent(MembershipOf({1, 2}, ""), false, kNow);
  roster_.SetPlan(PlanOf(2, "cd", "ab"));
  EXPECT_EQ(Next(), "nothing");
  for (const char name : {'a', 'b'}) roster_.SetLeft(Id(name), LeftReason::kDrained);
  EXPECT_EQ(Next(), "cd");
}

TEST_F(ProposerTest, IsLimited) {
  Proposer limited{{.max_learners = 2}};
  EXPECT_EQ(Names(limited.Next(roster_, history_, kNow)->members), "ab");
  roster_ = RosterOf("aAbBcC", kNow - 50s, 2);
  EXPECT_EQ(Names(limited.Next(roster_, history_, kNow)->members), "aAbB")
      << "the limit counts learners, not ranks";
}

TEST_F(ProposerTest, ALearnerLeavesWithAllItsRanks) {
  roster_ = RosterOf("aAbB", kNow - 50s, 2);
  Enter("aAbB", "aAbB");
  roster_.Disconnect(Id('B'), kNow - 20s);
  EXPECT_EQ(Next(), "aA, leaving");
}

TEST_F(ProposerTest, AProposalSaysWhatItReplacesAndWhoLeavesWithIt) {
  const Proposal first = Propose();
  EXPECT_EQ(first.replaces, std::nullopt);
  EXPECT_EQ(first.deadline, kNow + 10s);
  proposer_.Drop();
  Enter("ab", "ab");
  roster_.SetPlan(PlanOf(2, "c", "ab"));
  ASSERT_EQ(Next(kNow - 1s), "ac, leaving");
  const Proposal& proposal = Propose();
  EXPECT_EQ(proposal.membership, MembershipOf({1, 2}, "ac"));
  EXPECT_EQ(proposal.replaces, (MembershipId{1, 1}));
  EXPECT_THAT(proposal.leavers, ElementsAre(Id('a')));
  EXPECT_EQ(proposal.deadline, kNow + 3s) << "a learner waits to leave";
  EXPECT_TRUE(proposer_.Proposes(Id('c')));
  EXPECT_FALSE(proposer_.Proposes(Id('b')));
}

TEST_F(ProposerTest, AProposalIsAnnouncedWhenAllArePrepared) {
  EXPECT_FALSE(proposer_.OnPrepared(Id('a'), {1, 2}));
  Propose();
  EXPECT_FALSE(proposer_.OnPrepared(Id('a'), {1, 1}));
  EXPECT_FALSE(proposer_.OnPrepared(Id('x'), {1, 2}));
  Prepare("abc");
  EXPECT_EQ(Check().verdict, Verdict::kWait);
  Prepare("d");
  EXPECT_EQ(Check().verdict, Verdict::kAnnounce);
}

TEST_F(ProposerTest, AProposalIsWithdrawnWhenSomebodyDoesNotWantTo) {
  Propose();
  Prepare("abcd");
  roster_.MarkLeaving(Id('b'));
  EXPECT_EQ(Check(), (Proposer::Check{.verdict = Verdict::kWithdraw}));
  roster_ = RosterOf("abcd", kNow);
  EXPECT_EQ(Check().verdict, Verdict::kAnnounce);
  roster_.Disconnect(Id('b'), kNow);
  EXPECT_EQ(Check().verdict, Verdict::kWithdraw);
}

TEST_F(ProposerTest, JoinersThatAreLateAreNamed) {
  Enter("ab", "ab");
  Propose();
  Prepare("ac");
  EXPECT_EQ(Check(9999ms).verdict, Verdict::kWait);
  EXPECT_EQ(Check(10s), (Proposer::Check{Verdict::kWithdraw, {Id('d')}}))
      << "b is a member, so it is not named";
}

TEST_F(ProposerTest, PausesWhenOnlyMembersAreLate) {
  Enter("ab", "ab");
  Propose();
  Prepare("acd");
  EXPECT_EQ(Check(10s), (Proposer::Check{.verdict = Verdict::kWithdraw}));
  proposer_.Drop();
  EXPECT_EQ(Next(kNow + 14999ms), "nothing");
  EXPECT_EQ(Next(kNow + 15s), "abcd");
}

TEST_F(ProposerTest, IsAnnouncedByOneThatHoldsTheState) {
  Enter("abc", "bc");
  history_.OnProgress(Id('a'), {.following = true}, kNow);
  roster_.SetPlan(PlanOf(2, "ab", "c"));
  Propose();
  EXPECT_EQ(proposer_.announced_membership(), std::nullopt);
  EXPECT_EQ(proposer_.Announce(roster_, history_), Id('b'));
  EXPECT_EQ(proposer_.announced_membership(), MembershipOf({1, 2}, "ba"));
  roster_.Disconnect(Id('b'), kNow);
  EXPECT_EQ(proposer_.Announce(roster_, history_), Id('c'));
  roster_.Disconnect(Id('c'), kNow);
  EXPECT_EQ(proposer_.Announce(roster_, history_), std::nullopt);
  EXPECT_TRUE(proposer_.announced()) << "it may have reached the earlier announcer";
}

}  // namespace
}  // namespace pliant
