#include "trainer/membership/roster.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Roster, AHelloReplacesTheConnectionsOfItsPod) {
  Roster roster = RosterOf("ab", TimePoint{});
  EXPECT_THAT(roster.Connect(7, {.learner = Id('a')}, TimePoint{} + 1s),
              ElementsAre(ConnectionId{'a'}))
      << "it reconnected";
  LearnerId restarted = Id('a');
  restarted.nonce = 9;
  EXPECT_THAT(roster.Connect(8, {.learner = restarted}, TimePoint{} + 2s),
              ElementsAre(ConnectionId{7}));
  EXPECT_TRUE(roster.At(Id('a')).gone());
  EXPECT_EQ(roster.OfConnection(7), nullptr);
  EXPECT_EQ(roster.OfConnection(8)->id, restarted);
  EXPECT_TRUE(roster.Connected(Id('b')));
  EXPECT_THAT(roster.Connect(9, {.learner = Id('b'), .leaving = true}, TimePoint{} + 3s),
              ElementsAre(ConnectionId{'b'}));
  EXPECT_FALSE(roster.Wanted(roster.At(Id('b'))));
}

TEST(Roster, ForgetsWhatWasSentOnAnEarlierConnection) {
  Roster roster = RosterOf("a");
  for (const bool at_once : {false, true}) roster.MarkLeaveSent(Id('a'), at_once);
  roster.SetEntered(Id('a'), {1, 5});
  EXPECT_TRUE(roster.At(Id('a')).leave_sent);
  roster.Connect(7, {.learner = Id('a'), .membership = MembershipOf({1, 4}, "a")}, TimePoint{});
  EXPECT_FALSE(roster.At(Id('a')).leave_sent);
  EXPECT_FALSE(roster.At(Id('a')).leave_now_sent);
  EXPECT_EQ(roster.At(Id('a')).entered, (MembershipId{1, 5})) << "the newest known membership";
}

TEST(Roster, APlanSaysWhoIsWantedAndWhoHasEnded) {
  Roster roster = RosterOf("abc");
  roster.SetPlan(PlanOf(2, "a", "b", "c"));
  roster.Add(Id('d'), TimePoint{});
  EXPECT_TRUE(roster.Wanted(roster.At(Id('a'))));
  EXPECT_FALSE(roster.Wanted(roster.At(Id('b'))));
  EXPECT_TRUE(roster.At(Id('c')).gone());
  EXPECT_FALSE(roster.Wanted(roster.At(Id('d'))));
  EXPECT_FALSE(roster.At(Id('d')).listed);
  EXPECT_TRUE(roster.AllOfPlanConnected()) << "an ended learner need not be";
  roster.SetPlan(PlanOf(3, "abe"));
  EXPECT_FALSE(roster.AllOfPlanConnected());
  EXPECT_TRUE(roster.At(Id('c')).gone()) << "it has left permanently";
}

TEST(Roster, RanksAreOneLearner) {
  Roster roster = RosterOf("aAbB", TimePoint{}, 2);
  std::vector<Member> members = Members("aAb");
  roster.RemoveIncompleteLearners(members);
  EXPECT_EQ(Names(members), "aA");
  EXPECT_TRUE(roster.Complete(roster.At(Id('b'))));
  roster.Disconnect(Id('B'), TimePoint{});
  EXPECT_FALSE(roster.Complete(roster.At(Id('b'))));
  roster.MarkLeaving(Id('A'));
  EXPECT_TRUE(roster.At(Id('a')).leaving);
  roster.BackOff(Id('a'), TimePoint{});
  EXPECT_EQ(roster.At(Id('A')).backoff_until, TimePoint{} + 5s);
}

TEST(Roster, BackoffsGrow) {
  Roster roster = RosterOf("ab");
  const auto pause_of = [&](char name, TimePoint now) {
    return (roster.At(Id(name)).backoff_until - now) / 1s;
  };
  TimePoint now = TimePoint{} + 1h;
  for (const int seconds : {5, 10, 20, 40, 80, 160, 160}) {
    now += 10min;
    roster.BackOff(Id('a'), now);
    EXPECT_EQ(pause_of('a', now), seconds) << "missed proposals";
  }
  roster.SetPrepared(Id('a'));
  now += 10min;
  roster.BackOff(Id('a'), now);
  EXPECT_EQ(pause_of('a', now), 5) << "it prepared";
  for (const int seconds : {5, 10, 20, 40, 80, 160, 320, 640, 1280, 1280}) {
    now += 30min;
    roster.Quarantine(Id('b'), now);
    EXPECT_EQ(pause_of('b', now), seconds) << "evictions";
  }
  roster.ClearBackoffs();
  EXPECT_LT(roster.At(Id('b')).backoff_until, now);
  roster.Quarantine(Id('b'), now);
  EXPECT_EQ(pause_of('b', now), 5) << "its evictions no longer count";
}

TEST(Roster, ForgetsWhoIsNotComingBack) {
  Roster roster = RosterOf("abcde");
  for (const char name : std::string("bcde")) roster.Disconnect(Id(name), TimePoint{});
  for (const char name : {'b', 'e'}) roster.SetLeft(Id(name), LeftReason::kDrained);
  const auto names_after = [&](Duration duration) {
    roster.Forget([](const LearnerId& id) { return id == Id('d') || id == Id('e'); },
                  TimePoint{} + duration);
    std::string names;
    for (const auto& [id, learner] : roster.learners()) names += NameOf(id);
    return names;
  };
  EXPECT_EQ(names_after(10min), "acde") << "a learner that left is forgotten first";
  EXPECT_EQ(names_after(11min), "ade") << "unless it is still in use";
}

}  // namespace
}  // namespace pliant
