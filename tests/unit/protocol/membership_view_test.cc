#include "trainer/protocol/membership_view.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using Disposition = MembershipView::Disposition;
using Standing = MembershipView::Standing;

// Members with names of one letter; this learner is "s".
LearnerId IdOf(char name) { return {.name = std::string(1, name), .pod_uid = "u", .nonce = 1}; }
Membership Of(MembershipId id, const std::string& names) {
  Membership membership{.id = id, .members = {}};
  for (const char name : names) membership.members.push_back({.id = IdOf(name), .address = "x:1"});
  return membership;
}
std::string NamesOf(const std::vector<Member>& members) {
  std::string names;
  for (const Member& member : members) names += member.id.name;
  return names;
}
std::vector<Member> MembersOf(const std::string& names) { return Of({}, names).members; }

constexpr MembershipId kOld{1, 4};
constexpr MembershipId kPresent{1, 5};
constexpr MembershipId kSecond{1, 6};
constexpr MembershipId kThird{1, 7};
constexpr MembershipId kFourth{1, 8};
constexpr MembershipId kOfNextTerm{2, 1};

MembershipView ViewIn(const std::string& names, const std::string& left_behind = "") {
  MembershipView view(IdOf('s'));
  view.Enter(Of(kPresent, names), MembersOf(left_behind));
  return view;
}

// ---- What happens to a frame ----

// One letter per membership id, in this order.
constexpr MembershipId kIds[] = {{}, kOld, kPresent, kSecond, kThird, kFourth, kOfNextTerm};
char LetterOf(Disposition fate) {
  switch (fate) {
    case Disposition::kDeliver:
      return 'D';
    case Disposition::kHold:
      return 'H';
    case Disposition::kHoldAndEnter:
      return 'E';
    case Disposition::kSetFree:
      return 'F';
    case Disposition::kDrop:
      return '-';
  }
  return '?';
}
std::string FatesIn(const MembershipView& view, FrameKind kind, Standing standing) {
  std::string fates;
  for (const MembershipId id : kIds) {
    fates += LetterOf(view.DispositionOf({.kind = kind, .membership = id}, standing));
  }
  return fates;
}

TEST(MembershipView, FateOfAFrameFollowsFromItsMembershipAndWhereTheLearnerStands) {
  const auto idle = [](MembershipView&) {};
  const auto works = [](MembershipView& view) { view.Enter(Of(kPresent, "sa"), {}); };
  const auto proposed = [&](std::optional<MembershipId> replaces) {
    return [=](MembershipView& view) {
      view.Enter(Of(kPresent, "sa"), {});
      ASSERT_TRUE(view.Propose(Of(kThird, "sb"), replaces));
    };
  };
  const auto released = [](MembershipView& view) {
    view.Enter(Of(kPresent, "sa"), {});
    view.Release(Of(kSecond, "ab"));
  };
  const auto asked_back = [&](std::optional<MembershipId> replaces) {
    return [=](MembershipView& view) {
      released(view);
      ASSERT_TRUE(view.Propose(Of(kThird, "sab"), replaces));
    };
  };
  const auto entry_put_off = [](MembershipView& view) {
    view.Enter(Of(kPresent, "sa"), {});
    view.PutOffEntry(Of(kThird, "s"));
  };
  const struct {
    const char* name;
    std::function<void(MembershipView&)> arrange;
    Standing standing;
    std::string opened;     // fates of a kOpened frame, by kIds
    std::string any_other;  // fates of all other kinds
  } kCases[] = {
      {"no membership yet", idle, {}, "DHHHHHH", "DHHHHHH"},
      {"no membership yet, proposed to",
       [](MembershipView& view) { ASSERT_TRUE(view.Propose(Of(kThird, "sb"), std::nullopt)); },
       {},
       "DHHHEHH",
       "DHHHEHH"},
      {"works", works, {}, "--DHHHH", "--DHHHH"},
      {"works, what came early is to be taken first",
       works,
       {.frames_wait = true},
       "HHHHHHH",
       "HHHHHHH"},
      {"aborted", works, {.stopped = true}, "--DHHHH", "--DHHHH"},
      {"a successor of the current one is proposed: it is entered at the boundary",
       proposed(kPresent),
       {},
       "--DHHHH",
       "--DHHHH"},
      {"the same, but it aborted: it reaches no boundary",
       proposed(kPresent),
       {.stopped = true},
       "--DHEHH",
       "--DHEHH"},
      {"the same, what came early waits",
       proposed(kPresent),
       {.stopped = true, .frames_wait = true},
       "HHHHEHH",
       "HHHHEHH"},
      {"is proposed a successor of a membership that it is not in",
       proposed(kSecond),
       {},
       "--DHEHH",
       "--DHEHH"},
      {"is proposed one that replaces none", proposed(std::nullopt), {}, "--DHEHH", "--DHEHH"},
      {"is about to enter another", entry_put_off, {}, "HHHHHHH", "HHHHHHH"},
      {"was let go", released, {.released = true}, "--DFFFF", "--D-HHH"},
      {"was let go, what came early waits",
       released,
       {.released = true, .frames_wait = true},
       "HHHFFFF",
       "HHHHHHH"},
      {"was let go, and aborted since", released, {.stopped = true}, "--D-HHH", "--D-HHH"},
      {"was let go, is called back into a successor",
       asked_back(kSecond),
       {.released = true},
       "--DFEFF",
       "--D-EHH"},
      {"was let go, is called back into another successor of its last membership",
       asked_back(kPresent),
       {.released = true},
       "--DFFFF",
       "--D-HHH"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    MembershipView view(IdOf('s'));
    test.arrange(view);
    for (int kind = 1; kind <= static_cast<int>(kFrameKindLast); ++kind) {
      SCOPED_TRACE(kind);
      const auto frame_kind = static_cast<FrameKind>(kind);
      EXPECT_EQ(FatesIn(view, frame_kind, test.standing),
                frame_kind == FrameKind::kOpened ? test.opened : test.any_other);
    }
  }
}

TEST(MembershipView, AFrameComesEarlyIfItsMembershipIsNewerThanTheNewest) {
  MembershipView view = ViewIn("sa");
  EXPECT_FALSE(view.ComesEarly({.membership = kPresent}));
  EXPECT_TRUE(view.ComesEarly({.membership = kSecond}));
  view.Release(Of(kSecond, "a"));
  EXPECT_FALSE(view.ComesEarly({.membership = kSecond}))
      << "also for a membership that it is not in";
  EXPECT_TRUE(view.ComesEarly({.membership = kThird}));
}

// ---- Entering and leaving memberships ----

TEST(MembershipView, BeginsWithoutAMembership) {
  const MembershipView view(IdOf('s'));
  EXPECT_EQ(view.current(), Membership{});
  EXPECT_FALSE(view.newest());
  EXPECT_TRUE(view.IsNews({0, 0})) << "every membership is news";
  EXPECT_TRUE(view.NeededPeers().empty());
  EXPECT_TRUE(view.AllStay());
}

TEST(MembershipView, ItsRankIsItsPlaceAmongTheMembers) {
  const MembershipView view = ViewIn("abs");
  EXPECT_EQ(view.rank(), 2);
  EXPECT_EQ(view.member(1), IdOf('b'));
  EXPECT_TRUE(view.IsSelf(view.member(2)));
  EXPECT_FALSE(view.IsSelf(view.member(1)));
}

TEST(MembershipView, EnteringLeavesBehindWhatWasOfTheMembershipBefore) {
  MembershipView view = ViewIn("sa");
  view.SetAnnouncement(Of(kThird, "sb"));
  view.PutOffEntry(Of(kSecond, "s"));
  view.PutOffLoss({.accused = {IdOf('a')}, .cause = "reset"});
  view.Enter(Of(kThird, "sb"), {});
  EXPECT_EQ(view.current(), Of(kThird, "sb"));
  EXPECT_EQ(view.newest(), Of(kThird, "sb"));
  EXPECT_FALSE(view.announcement());
  EXPECT_FALSE(view.entry_put_off());
  EXPECT_FALSE(view.TakeLoss());
}

TEST(MembershipView, BeingReleasedKeepsTheOneItWasInAndWhatHasToWait) {
  MembershipView view = ViewIn("sa");
  view.SetAnnouncement(Of(kSecond, "a"));
  view.PutOffLoss({.accused = {IdOf('a')}, .cause = "reset"});
  view.Release(Of(kSecond, "a"));
  EXPECT_EQ(view.current().id, kPresent) << "its state may still be needed";
  EXPECT_EQ(view.newest()->id, kSecond);
  EXPECT_FALSE(view.announcement());
  EXPECT_TRUE(view.TakeLoss()) << "a drain receives the loss";
}

TEST(MembershipView, AProposalEndsWithTheMembershipThatOvertakesIt) {
  for (const bool release : {false, true}) {
    for (const MembershipId proposed : {kSecond, kThird, kFourth}) {
      SCOPED_TRACE(ToString(proposed) + (release ? " released" : " entered"));
      MembershipView view = ViewIn("sa");
      ASSERT_TRUE(view.Propose(Of(proposed, "sb"), kPresent));
      if (release) {
        view.Release(Of(kThird, "b"));
      } else {
        view.Enter(Of(kThird, "s"), {});
      }
      EXPECT_EQ(view.proposal().has_value(), proposed == kFourth);
    }
  }
}

// ---- Leavers, and learners left behind ----

TEST(MembershipView, ABoundaryLeavesBehindThoseInSyncAndThoseWhoGo) {
  const struct {
    const char* name;
    std::string left_behind;  // by the earlier boundary
    std::vector<bool> in_sync;
    std::string next;
    std::string want;
  } kCases[] = {
      {"all stay in sync", "", {true, true, true}, "sab", "sab"},
      {"one leaves", "", {true, true, true}, "sa", "sab"},
      {"a member that catches up is not waited for", "", {true, true, false}, "sab", "sa"},
      {"unless it leaves", "", {true, true, false}, "sa", "sab"},
      {"a joiner is not left behind", "", {true, true, true}, "sabc", "sab"},
      {"those of the boundary before are not forgotten", "cd", {true, false, false}, "sa", "cdsb"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    const MembershipView view = ViewIn("sab", test.left_behind);
    EXPECT_EQ(NamesOf(view.MembersToAnswerFor(Of(kSecond, test.next), test.in_sync)), test.want);
  }
}

TEST(MembershipView, LeaversMayGoOnceAllWhoStayedHoldTheStateAgain) {
  MembershipView view = ViewIn("sab", "sacd");
  EXPECT_EQ(NamesOf(view.TakeLeavers({true, false, true})), "") << "a is behind";
  EXPECT_EQ(NamesOf(view.TakeLeavers({true, true, false})), "cd") << "b was not left behind";
  EXPECT_EQ(NamesOf(view.TakeLeavers({true, true, true})), "") << "they are returned once";
}

TEST(MembershipView, NobodyIsReleasedThatStayed) {
  MembershipView view = ViewIn("sa", "sa");
  EXPECT_EQ(NamesOf(view.TakeLeavers({true, true})), "");
}

// ---- Proposals ----

TEST(MembershipView, TakesAProposalThatIsNewsAndNamesIt) {
  const struct {
    const char* name;
    Membership membership;
    bool want;
  } kCases[] = {
      {"a newer one", Of(kSecond, "sb"), true},
      {"of a newer coordinator", Of(kOfNextTerm, "s"), true},
      {"the present one", Of(kPresent, "sb"), false},
      {"an older one", Of(kOld, "sb"), false},
      {"without it", Of(kSecond, "ab"), false},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    MembershipView view = ViewIn("sa");
    EXPECT_EQ(view.Propose(test.membership, kPresent), test.want);
    EXPECT_EQ(view.proposal().has_value(), test.want);
    if (!test.want) continue;
    EXPECT_EQ(view.proposal()->membership, test.membership);
    EXPECT_EQ(view.proposal()->replaces, kPresent);
  }
}

TEST(MembershipView, AProposalIsPreparedOnce) {
  MembershipView view = ViewIn("sa");
  ASSERT_TRUE(view.Propose(Of(kSecond, "sb"), kPresent));
  EXPECT_TRUE(view.SetPrepared());
  EXPECT_FALSE(view.SetPrepared());
  ASSERT_TRUE(view.Propose(Of(kThird, "sb"), kPresent));
  EXPECT_TRUE(view.SetPrepared()) << "another one";
}

TEST(MembershipView, WithdrawsOnlyTheProposalThatIsNamed) {
  MembershipView view = ViewIn("sa");
  EXPECT_FALSE(view.Withdraw(kSecond)) << "there is no proposal";
  ASSERT_TRUE(view.Propose(Of(kThird, "sb"), kPresent));
  EXPECT_FALSE(view.Withdraw(kSecond));
  EXPECT_TRUE(view.proposal());
  EXPECT_TRUE(view.Withdraw(kThird));
  EXPECT_FALSE(view.proposal());
}

TEST(MembershipView, AnAnnouncementEndsWithANewerProposal) {
  for (const auto& [proposed, kept] :
       {std::pair(kSecond, true), {kThird, true}, {kFourth, false}}) {
    SCOPED_TRACE(ToString(proposed));
    MembershipView view = ViewIn("sa");
    view.SetAnnouncement(Of(kThird, "sb"));
    ASSERT_TRUE(view.Propose(Of(proposed, "sc"), kPresent));
    EXPECT_EQ(view.announcement().has_value(), kept);
  }
}

TEST(MembershipView, AllStayUnlessTheProposalLeavesSomebodyOut) {
  for (const auto& [next, all_stay] :
       {std::pair("sab", true), {"basc", true}, {"sa", false}, {"sac", false}}) {
    SCOPED_TRACE(next);
    MembershipView view = ViewIn("sab");
    ASSERT_TRUE(view.Propose(Of(kSecond, next), kPresent));
    EXPECT_EQ(view.AllStay(), all_stay);
  }
}

// ---- Deferred events ----

TEST(MembershipView, MayEnterWhatIsNewerThanTheNewestAndTheOnePutOff) {
  MembershipView view = ViewIn("sa");
  EXPECT_FALSE(view.MayEnter(kPresent));
  EXPECT_TRUE(view.MayEnter(kSecond));
  view.PutOffEntry(Of(kThird, "s"));
  EXPECT_TRUE(view.entry_put_off());
  EXPECT_FALSE(view.MayEnter(kSecond));
  EXPECT_FALSE(view.MayEnter(kThird));
  EXPECT_TRUE(view.MayEnter(kFourth));
  EXPECT_EQ(view.TakeEntry(), Of(kThird, "s"));
  EXPECT_FALSE(view.entry_put_off());
  EXPECT_FALSE(view.TakeEntry()) << "once";
  EXPECT_TRUE(view.MayEnter(kThird));
}

TEST(MembershipView, TheNewestEntryPutOffCounts) {
  MembershipView view = ViewIn("sa");
  view.PutOffEntry(Of(kSecond, "s"));
  view.PutOffEntry(Of(kThird, "sb"));
  EXPECT_EQ(view.TakeEntry(), Of(kThird, "sb"));
}

TEST(MembershipView, ALossPutOffIsTakenOnce) {
  MembershipView view = ViewIn("sa");
  EXPECT_FALSE(view.TakeLoss());
  const Loss loss{.accused = {IdOf('a')}, .cause = "reset"};
  view.PutOffLoss(loss);
  EXPECT_EQ(view.TakeLoss(), loss);
  EXPECT_FALSE(view.TakeLoss());
}

TEST(MembershipView, LossesPutOffAreOneThatTellsWhoIsAccusedAndWhyFirst) {
  const Loss kGaveUp{.accused = {}, .cause = "a aborted"};
  const Loss kAlsoGaveUp{.accused = {}, .cause = "b aborted"};
  const Loss kReset{.accused = {IdOf('a')}, .cause = "reset"};
  const Loss kSilent{.accused = {IdOf('a')}, .cause = "silent"};
  const Loss kTwo{.accused = {IdOf('b'), IdOf('a')}, .cause = "timed out"};
  const struct {
    const char* name;
    std::vector<Loss> losses;
    std::string accused;
    std::string cause;
  } kCases[] = {
      {"an abort without accusation gives no cause", {kGaveUp, kReset}, "a", "reset"},
      {"in any order", {kReset, kGaveUp}, "a", "reset"},
      {"the first accusation counts", {kGaveUp, kAlsoGaveUp, kTwo, kReset}, "ba", "timed out"},
      {"no member is accused twice", {kReset, kSilent}, "a", "reset"},
      {"no member is accused twice among others", {kReset, kTwo}, "ab", "reset"},
      {"the first abort is named", {kGaveUp, kAlsoGaveUp}, "", "a aborted"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    MembershipView view = ViewIn("sab");
    for (const Loss& loss : test.losses) view.PutOffLoss(loss);
    const std::optional<Loss> taken = view.TakeLoss();
    ASSERT_TRUE(taken);
    std::string accused;
    for (const LearnerId& id : taken->accused) accused += id.name;
    EXPECT_EQ(accused, test.accused);
    EXPECT_EQ(taken->cause, test.cause);
  }
}

// ---- Peers ----

TEST(MembershipView, NeedsThePeersOfAllMembershipsThatMatter) {
  const auto needed = [](const MembershipView& view) {
    std::string names;
    for (const LearnerId& id : view.NeededPeers()) names += id.name;
    return names;
  };
  MembershipView view = ViewIn("sa", "b");
  EXPECT_EQ(needed(view), "abs") << "the current members, and those left behind";
  ASSERT_TRUE(view.Propose(Of(kFourth, "sc"), kPresent));
  EXPECT_EQ(needed(view), "abcs") << "members of the proposed membership";
  view.PutOffEntry(Of(kThird, "sd"));
  EXPECT_EQ(needed(view), "abcds") << "members of the membership to enter next";
  view.Release(Of(kSecond, "ef"));
  EXPECT_EQ(needed(view), "abcdefs") << "members of the newest membership";
  ASSERT_TRUE(view.Withdraw(kFourth));
  view.TakeEntry();
  EXPECT_EQ(needed(view), "abefs");
  view.Enter(Of(kThird, "sd"), {});
  EXPECT_EQ(needed(view), "ds");
}

}  // namespace
}  // namespace pliant
