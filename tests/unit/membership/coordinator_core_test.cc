#include "trainer/membership/coordinator_core.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"
#include "trainer/membership/fingerprint_keys.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// Feeds events to the core, and records its effects as lines: "a: prepare 1.1 ab", "persist 1",
// "close a".
class CoordinatorCoreTest : public testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void Start(CoordinatorOptions options) { core_.emplace(options, now_); }

  Lines Wanted(const std::string& names, const std::string& leaving = {},
               const std::string& ended = {}) {
    const Result<CoordinatorEffects> effects =
        core_->SetPlan(PlanOf(++sequence_, names, leaving, ended), now_);
    EXPECT_TRUE(effects);
    return Write(*effects);
  }

  Lines Hello(char name, std::optional<Membership> membership = std::nullopt,
              std::optional<Membership> before = std::nullopt) {
    connection_[name] = ++last_connection_;
    return Says(name, pliant::Hello{.learner = Id(name),
                                    .ranks = ranks_,
                                    .address = "at",
                                    .membership = membership,
                                    .before = before,
                                    .has_state = membership.has_value()});
  }
  Lines Says(char name, const LearnerMessage& message) {
    return Write(core_->OnMessage(connection_[name], message, now_));
  }
  Lines Dies(char name) { return Write(core_->OnDisconnected(connection_[name], now_)); }
  // Time passes; the learners in `talking` send heartbeats.
  Lines After(Duration duration, const std::string& talking = {}) {
    Lines all;
    const TimePoint end = now_ + duration;
    while (now_ < end) {
      now_ += CoordinatorCore::kPollInterval;
      for (const char name : talking) {
        Append(all, Says(name, Progress{.membership = entered_[name]}));
      }
      Append(all, Write(core_->OnTimer(now_)));
    }
    return all;
  }

  // All of `names` switch to the membership and open it.
  Lines Opens(MembershipId id, const std::string& names, Tick tick = 1) {
    Lines all;
    for (const char name : names) {
      entered_[name] = id;
      Append(all, Says(name, Entered{.membership = MembershipOf(id, names)}));
    }
    for (const char name : names) {
      Append(all, Says(name, Opened{.membership = id, .applied_ticks = tick}));
    }
    return all;
  }
  // Starts a membership of `names`.
  void Running(const std::string& names) {
    Start({});
    Wanted(names);
    for (const char name : names) Hello(name);
    for (const char name : names) Says(name, Prepared{{1, 1}});
    Opens({1, 1}, names);
  }

  void RunningRanks(const std::string& learners, const std::string& ranks) {
    Start({});
    Wanted(learners);
    for (const char rank : ranks) Hello(rank);
    for (const char rank : ranks) Says(rank, Prepared{{1, 1}});
    Opens({1, 1}, ranks);
  }

  Lines Write(const CoordinatorEffects& effects) {
    Lines lines;
    for (const CoordinatorEffect& effect : effects) {
      if (const auto* persist = std::get_if<PersistCounter>(&effect)) {
        lines.push_back("persist " + std::to_string(persist->counter));
      } else if (const auto* close = std::get_if<CloseConnection>(&effect)) {
        lines.push_back("close " + NameOf(close->connection));
      } else {
        const auto& send = std::get<SendMessage>(effect);
        const auto* const welcome = std::get_if<Welcome>(&send.message);
        if (welcome == nullptr) {
          lines.push_back(NameOf(send.connection) + ": " + Text(send.message));
        }
      }
    }
    return lines;
  }
  static void Append(Lines& lines, const Lines& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  std::string NameOf(ConnectionId id) const {
    for (const auto& [name, connection] : connection_) {
      if (connection == id) return {name};
    }
    return "old " + std::to_string(id);
  }
  static std::string Text(const CoordinatorMessage& message) {
    std::string text(pliant::NameOf(message));
    const auto add = [&](const Membership& membership) {
      text += " " + ToString(membership.id) + " " + Names(membership.members);
    };
    if (const auto* prepare = std::get_if<Prepare>(&message)) add(prepare->membership);
    if (const auto* announce = std::get_if<Announce>(&message)) add(announce->membership);
    if (const auto* recover = std::get_if<Recover>(&message)) add(recover->membership);
    if (const auto* withdraw = std::get_if<Withdraw>(&message)) {
      text += " " + ToString(withdraw->membership);
    }
    if (const auto* leave = std::get_if<Leave>(&message)) {
      text += leave->at_once ? " at once" : " at a boundary";
    }
    return text;
  }

  TimePoint now_{};
  std::optional<CoordinatorCore> core_;
  int ranks_ = 1;  // ranks per learner
  std::uint64_t sequence_ = 0;
  ConnectionId last_connection_ = 0;
  std::map<char, ConnectionId> connection_;
  std::map<char, MembershipId> entered_;
};

TEST_F(CoordinatorCoreTest, TheFirstMembershipBeginsWhenAllOfItArePrepared) {
  Start({});
  EXPECT_THAT(Wanted("ab"), IsEmpty());
  EXPECT_THAT(Hello('b'), IsEmpty()) << "the other learner may come in a moment";
  EXPECT_THAT(Hello('a'), ElementsAre("persist 1", "a: prepare 1.1 ab", "b: prepare 1.1 ab"));
  EXPECT_THAT(Says('b', Prepared{{1, 1}}), IsEmpty());
  EXPECT_THAT(Says('a', Prepared{{1, 1}}), ElementsAre("a: announce 1.1 ab", "b: announce 1.1 ab"));
  EXPECT_EQ(core_->progress().state, JobState::kResizing);
  EXPECT_THAT(Opens({1, 1}, "ab"), IsEmpty());
  EXPECT_EQ(core_->progress().state, JobState::kRunning);
}

TEST_F(CoordinatorCoreTest, DoesNotWaitLongForThoseWhoAreNotReady) {
  Start({});
  Wanted("ab");
  Hello('a');
  EXPECT_THAT(After(400ms, "a"), IsEmpty());
  EXPECT_THAT(After(200ms, "a"), ElementsAre("persist 1", "a: prepare 1.1 a"));
}

TEST_F(CoordinatorCoreTest, AJoinAndALeaveAreOneChange) {
  Running("ab");
  EXPECT_THAT(Hello('c'), IsEmpty()) << "the plan does not want it";
  EXPECT_THAT(Wanted("ac", "b"), ElementsAre("persist 2", "a: prepare 1.2 ac", "c: prepare 1.2 ac",
                                             "b: leave at a boundary"));
  Says('c', Prepared{{1, 2}});
  EXPECT_THAT(Says('a', Prepared{{1, 2}}), ElementsAre("a: announce 1.2 ac"));
  EXPECT_THAT(After(5s, "abc"), IsEmpty()) << "ticks may take long";
  EXPECT_THAT(Says('b', Entered{.membership = MembershipOf({1, 2}, "ac")}), IsEmpty())
      << "its state may be needed until the others hold it";
  EXPECT_THAT(Opens({1, 2}, "ac"), ElementsAre("b: leave at once"));
  const JobProgress progress = core_->progress();
  ASSERT_EQ(progress.resizes.size(), 2U);
  EXPECT_EQ(progress.resizes[1].kind, Resize::Kind::kPlanned);
  EXPECT_EQ(progress.resizes[1].from, 2);
  EXPECT_TRUE(progress.resizes[1].running_unix_seconds.has_value());
}

TEST_F(CoordinatorCoreTest, ALeaveDoesNotWaitForAJoinThatIsNotPrepared) {
  Running("ab");
  Hello('c');
  Wanted("ac", "b");
  Says('a', Prepared{{1, 2}});
  EXPECT_THAT(After(2900ms, "abc"), IsEmpty());
  EXPECT_THAT(After(200ms, "abc"),
              ElementsAre("a: withdraw 1.2", "c: withdraw 1.2", "persist 3", "a: prepare 1.3 a"));
  EXPECT_THAT(Says('a', Prepared{{1, 3}}), ElementsAre("a: announce 1.3 a"));
  Opens({1, 3}, "a");
  EXPECT_THAT(After(6s, "ac"), ElementsAre("persist 4", "a: prepare 1.4 ac", "c: prepare 1.4 ac"))
      << "the slow one is proposed again later";
}

// a and d hold the state of the membership acd, c is still receiving it; e is ready.
TEST_F(CoordinatorCoreTest, ALeaveDoesNotWaitForAStateThatIsOnItsWay) {
  const struct {
    const char* name;
    const char* wanted;
    const char* leaving;
    Lines want;
  } kCases[] = {
      {"one of the holders",
       "ac",
       "d",
       {"persist 3", "a: prepare 1.3 ac", "c: prepare 1.3 ac", "d: leave at a boundary"}},
      {"rank 0: the next one holds it, too",
       "cd",
       "a",
       {"persist 3", "d: prepare 1.3 dc", "c: prepare 1.3 dc", "a: leave at a boundary"}},
      {"the one that it is on its way to",
       "ad",
       "c",
       {"persist 3", "a: prepare 1.3 ad", "d: prepare 1.3 ad", "c: leave at a boundary"}},
      {"with a joiner, one change",
       "ace",
       "d",
       {"persist 3", "a: prepare 1.3 ace", "c: prepare 1.3 ace", "e: prepare 1.3 ace",
        "d: leave at a boundary"}},
      {"all: those that hold it write a checkpoint",
       "",
       "acd",
       {"persist 3", "a: announce 1.3 ", "a: leave at a boundary", "c: leave at a boundary",
        "d: leave at a boundary"}},
      {"but the last holders", "c", "ad", {"a: leave at a boundary", "d: leave at a boundary"}},
      {"but a join", "acde", "", {}},
  };
  for (const auto& item : kCases) {
    SCOPED_TRACE(item.name);
    Running("a");
    Hello('c');
    Hello('d');
    Wanted("acd");
    for (const char name : {'a', 'c', 'd'}) Says(name, Prepared{{1, 2}});
    for (const char name : {'a', 'c', 'd'}) {
      Says(name, Entered{.membership = MembershipOf({1, 2}, "acd")});
    }
    for (const char name : {'a', 'd'}) Says(name, Opened{.membership = {1, 2}, .applied_ticks = 9});
    Hello('e');
    EXPECT_THAT(Says('c', Progress{.membership = MembershipId{1, 2}}), IsEmpty());
    Wanted("acd");
    Says('c', Progress{.membership = MembershipId{1, 2}, .following = true});
    EXPECT_THAT(Wanted(item.wanted, item.leaving), testing::ElementsAreArray(item.want));
  }
}

TEST_F(CoordinatorCoreTest, AMemberThatSaysNothingOfItsStateIsWaitedFor) {
  Running("a");
  Hello('c');
  Wanted("ac");
  for (const char name : {'a', 'c'}) Says(name, Prepared{{1, 2}});
  for (const char name : {'a', 'c'}) {
    Says(name, Entered{.membership = MembershipOf({1, 2}, "ac")});
  }
  Says('a', Opened{.membership = {1, 2}});
  // This message refers to the membership before.
  Says('c', Progress{.membership = MembershipId{1, 1}, .following = true});
  EXPECT_THAT(Wanted("a", "c"), ElementsAre("c: leave at a boundary"));
  EXPECT_THAT(Says('c', Progress{.membership = MembershipId{1, 2}, .following = true}),
              ElementsAre("persist 3", "a: prepare 1.3 a"));
}

TEST_F(CoordinatorCoreTest, AFollowerReportsAgainInTheNextMembership) {
  Running("a");
  Hello('c');
  Wanted("ac");
  for (const char name : {'a', 'c'}) Says(name, Prepared{{1, 2}});
  const auto begin = [&](MembershipId id) {
    for (const char name : {'a', 'c'}) Says(name, Entered{.membership = MembershipOf(id, "ac")});
    Says('a', Opened{.membership = id});
  };
  begin({1, 2});
  Says('c', Progress{.membership = MembershipId{1, 2}, .following = true});
  Says('c', Lost{.membership = {1, 2}, .accused = {Id('a')}});
  EXPECT_THAT(After(500ms, "ac"), Contains("c: recover 1.3 ac"));
  begin({1, 3});
  EXPECT_THAT(Wanted("a", "c"), ElementsAre("c: leave at a boundary"));
  EXPECT_THAT(Says('c', Progress{.membership = MembershipId{1, 3}, .following = true}),
              ElementsAre("persist 4", "a: prepare 1.4 a"));
}

TEST_F(CoordinatorCoreTest, AProposalThatNamesTheDeadIsWithdrawn) {
  Running("a");
  Wanted("abc");
  Hello('b');
  EXPECT_THAT(Hello('c'), ElementsAre("persist 2", "a: prepare 1.2 abc", "b: prepare 1.2 abc",
                                      "c: prepare 1.2 abc"));
  EXPECT_THAT(Dies('b'), ElementsAre("a: withdraw 1.2", "c: withdraw 1.2"));
  EXPECT_THAT(After(600ms, "ac"),
              ElementsAre("persist 3", "a: prepare 1.3 ac", "c: prepare 1.3 ac"));
}

TEST_F(CoordinatorCoreTest, EverybodyIsReplacedThroughOneWhoHandsTheStateOn) {
  Running("ab");
  Hello('c');
  EXPECT_THAT(Wanted("c", "ab"), ElementsAre("persist 2", "a: prepare 1.2 ac", "c: prepare 1.2 ac",
                                             "a: leave at a boundary", "b: leave at a boundary"));
  Says('a', Prepared{{1, 2}});
  EXPECT_THAT(Says('c', Prepared{{1, 2}}), ElementsAre("a: announce 1.2 ac"));
  EXPECT_THAT(Opens({1, 2}, "ac"),
              ElementsAre("persist 3", "c: prepare 1.3 c", "b: leave at once"));
}

TEST_F(CoordinatorCoreTest, ASuspendedJobIsNotStartedBeforeItsLastCheckpoint) {
  Running("ab");
  EXPECT_THAT(Wanted("", "ab"), ElementsAre("persist 2", "a: announce 1.2 ",
                                            "a: leave at a boundary", "b: leave at a boundary"));
  Says('a', Entered{.membership = MembershipOf({1, 2}, "")});
  EXPECT_EQ(core_->progress().state, JobState::kDrained);
  Wanted("c", "ab");
  EXPECT_THAT(Hello('c'), IsEmpty());
  EXPECT_THAT(Says('a', Left{}), ElementsAre("close a"));
  EXPECT_THAT(After(1s, "bc"), IsEmpty()) << "b waits for its checkpoint";
  EXPECT_THAT(Says('b', Left{}), ElementsAre("close b", "persist 3", "c: prepare 1.3 c"));
}

TEST_F(CoordinatorCoreTest, ALastCheckpointMayBeWrittenBySomebodyWhoIsOutOfContact) {
  Running("ab");
  Wanted("", "ab");
  Says('a', Entered{.membership = MembershipOf({1, 2}, "")});
  Wanted("c", "ab");
  Hello('c');
  Says('b', Left{});
  Dies('a');
  EXPECT_THAT(After(9s, "c"), IsEmpty());
  EXPECT_THAT(After(2s, "c"), ElementsAre("persist 3", "c: prepare 1.3 c"));
}

TEST_F(CoordinatorCoreTest, ACrashIsRecoveredFromByThoseWhoAreLeft) {
  Running("abc");
  Dies('b');
  EXPECT_THAT(After(2s, "ac"), IsEmpty()) << "it may reconnect; no peer reports a loss";
  Says('a', Lost{.membership = {1, 1}, .accused = {Id('b')}});
  Says('c', Lost{.membership = {1, 1}, .accused = {}});
  EXPECT_EQ(core_->progress().state, JobState::kRecovering);
  EXPECT_THAT(After(600ms, "ac"),
              ElementsAre("persist 2", "a: recover 1.2 ac", "c: recover 1.2 ac"));
}

// All connections of the process end at the same time, whichever end is noticed first.
TEST_F(CoordinatorCoreTest, AProcessThatDiedIsNotWaitedFor) {
  const Lost accuses{.membership = {1, 1}, .accused = {Id('b')}};
  const Lost gave_up{.membership = {1, 1}, .accused = {}};
  const auto want = ElementsAre("persist 2", "a: recover 1.2 ac", "c: recover 1.2 ac");

  Running("abc");
  EXPECT_THAT(Dies('b'), IsEmpty());
  EXPECT_THAT(Says('a', accuses), IsEmpty()) << "c may have lost another member";
  EXPECT_THAT(Says('c', gave_up), want);

  Running("abc");
  EXPECT_THAT(Says('a', accuses), IsEmpty());
  EXPECT_THAT(Says('c', gave_up), IsEmpty()) << "b may be alive behind a broken link";
  EXPECT_THAT(Dies('b'), want);

  Running("abc");
  Says('a', accuses);
  Dies('b');
  EXPECT_THAT(After(100ms, "ac"), IsEmpty());
  EXPECT_THAT(After(100ms, "ac"), want) << "c reports nothing, but is connected";
}

// No remaining member is known to hold the state: it may return with the lost one.
TEST_F(CoordinatorCoreTest, TheOnlyHolderIsWaitedFor) {
  Running("a");
  Hello('b');
  Wanted("ab");
  for (const char name : {'a', 'b'}) Says(name, Prepared{{1, 2}});
  for (const char name : {'a', 'b'}) {
    Says(name, Entered{.membership = MembershipOf({1, 2}, "ab")});
  }
  Says('b', Lost{.membership = {1, 2}, .accused = {Id('a')}});
  Dies('a');
  EXPECT_THAT(After(400ms, "b"), IsEmpty());
  EXPECT_THAT(After(200ms, "b"), ElementsAre("persist 3", "b: recover 1.3 b"));
}

TEST_F(CoordinatorCoreTest, AnEndedPodIsNotWaitedFor) {
  Running("ab");
  Dies('b');
  Wanted("a", "", "b");
  EXPECT_THAT(After(300ms, "a"), ElementsAre("persist 2", "a: recover 1.2 a"));
}

TEST_F(CoordinatorCoreTest, OneThatHangsIsRemovedAfterItsHeartbeatsStop) {
  Running("ab");
  After(1s, "ab");
  Says('a', Lost{.membership = {1, 1}, .accused = {Id('b')}});
  EXPECT_THAT(After(9s, "a"), IsEmpty()) << "it is connected";
  EXPECT_THAT(After(3s, "a"), ElementsAre("close b", "persist 2", "a: recover 1.2 a"));
}

// Its kernel still answers for it, so no peer accuses it.
TEST_F(CoordinatorCoreTest, OneThatIsFrozenIsRemovedWhenItMayHaveBeenBack) {
  Running("ab");
  After(1s, "ab");
  EXPECT_THAT(After(9s, "a"), IsEmpty());
  EXPECT_THAT(After(2s, "a"), ElementsAre("close b"));
  EXPECT_THAT(After(3s, "a"), ElementsAre("persist 2", "a: recover 1.2 a"));
}

TEST_F(CoordinatorCoreTest, TheStepDoesNotGoBackWhenOneThatWasLostIsBack) {
  Running("ab");
  const auto say_step = [&](char name, MembershipId membership, std::uint64_t step) {
    Says(name, Progress{.membership = membership, .tick = step, .step = step});
  };
  say_step('a', {1, 1}, 5);
  say_step('b', {1, 1}, 5);
  EXPECT_EQ(core_->progress().step, 5);
  After(11s, "a");
  After(4s, "a");
  Opens({1, 2}, "a", 6);
  say_step('a', {1, 2}, 9);
  EXPECT_EQ(core_->progress().step, 9);

  Hello('b', MembershipOf({1, 1}, "ab"));
  for (const char name : {'a', 'b'}) Says(name, Prepared{{1, 3}});
  Opens({1, 3}, "ab", 10);
  EXPECT_EQ(core_->progress().membership->id, (MembershipId{1, 3}));
  EXPECT_EQ(core_->progress().step, 9);
  say_step('a', {1, 3}, 11);
  say_step('b', {1, 3}, 11);
  EXPECT_EQ(core_->progress().step, 11);
}

TEST_F(CoordinatorCoreTest, ABrokenLinkIsTriedOnceMoreThenTheFewestGo) {
  Running("abc");
  Says('a', Lost{.membership = {1, 1}, .accused = {Id('b')}});
  Says('b', Lost{.membership = {1, 1}, .accused = {Id('a')}});
  EXPECT_THAT(After(500ms, "abc"), ElementsAre("persist 2", "a: recover 1.2 abc",
                                               "b: recover 1.2 abc", "c: recover 1.2 abc"));
  for (const char name : std::string("abc")) {
    Says(name, Entered{.membership = MembershipOf({1, 2}, "abc")});
  }
  Says('a', Lost{.membership = {1, 2}, .accused = {Id('b')}});
  EXPECT_THAT(After(500ms, "abc"),
              ElementsAre("persist 3", "a: recover 1.3 ac", "c: recover 1.3 ac"));
}

TEST_F(CoordinatorCoreTest, ALinkThatBreaksEveryFewMinutesIsNotTriedForEver) {
  Running("abc");
  const auto breaks = [&](MembershipId in) {
    Says('a', Lost{.membership = in, .accused = {Id('b')}});
    return After(500ms, "abc");
  };
  EXPECT_THAT(breaks({1, 1}), Contains("a: recover 1.2 abc"));
  Opens({1, 2}, "abc");
  After(3min, "abc");
  EXPECT_THAT(breaks({1, 2}), Contains("a: recover 1.3 abc"));
  Opens({1, 3}, "abc");
  After(3min, "abc");
  EXPECT_THAT(breaks({1, 3}), ElementsAre("persist 4", "a: recover 1.4 ac", "c: recover 1.4 ac"));
}

TEST_F(CoordinatorCoreTest, AMemberThatIsEvictedAgainStaysAwayForLonger) {
  Running("ab");
  const auto breaks_twice = [&](std::uint64_t counter) {
    Says('b', Lost{.membership = {1, counter}, .accused = {Id('a')}});
    After(500ms, "ab");
    Opens({1, counter + 1}, "ab");
    Says('b', Lost{.membership = {1, counter + 1}, .accused = {Id('a')}});
    return After(500ms, "ab");
  };
  EXPECT_THAT(breaks_twice(1), ElementsAre("persist 3", "a: recover 1.3 a"));
  Opens({1, 3}, "a");
  EXPECT_THAT(After(4s, "ab"), IsEmpty());
  EXPECT_THAT(After(1s, "ab"), ElementsAre("persist 4", "a: prepare 1.4 ab", "b: prepare 1.4 ab"));
  for (const char name : {'a', 'b'}) Says(name, Prepared{{1, 4}});
  Opens({1, 4}, "ab");
  EXPECT_THAT(After(10min, "ab"), IsEmpty());
  EXPECT_THAT(breaks_twice(4), ElementsAre("persist 6", "a: recover 1.6 a"));
  Opens({1, 6}, "a");
  EXPECT_THAT(After(9s, "ab"), IsEmpty()) << "the back-off has doubled";
  EXPECT_THAT(After(1s, "ab"), Contains("a: prepare 1.7 ab"));
}

// For either end that breaks the links, or that violates the protocol.
TEST_F(CoordinatorCoreTest, AMemberWhoseLinksKeepBreakingIsEvictedAtAnyRank) {
  Running("abc");
  const auto is_accused = [&](MembershipId in) {
    for (const char name : {'b', 'c'}) Says(name, Lost{.membership = in, .accused = {Id('a')}});
    return After(500ms, "abc");
  };
  EXPECT_THAT(is_accused({1, 1}), Contains("a: recover 1.2 abc"));
  Opens({1, 2}, "abc");
  EXPECT_THAT(is_accused({1, 2}),
              ElementsAre("persist 3", "b: recover 1.3 bc", "c: recover 1.3 bc"));
}

// Not all report at once: the first that aborts notifies the others.
TEST_F(CoordinatorCoreTest, TheEndOfABrokenLinkWithMoreBreaksIsEvicted) {
  Running("abc");
  const auto is_accused = [&](MembershipId in, const std::string& by) {
    for (const char name : by) Says(name, Lost{.membership = in, .accused = {Id('a')}});
    return After(500ms, "abc");
  };
  EXPECT_THAT(is_accused({1, 1}, "b"), Contains("a: recover 1.2 abc"));
  Opens({1, 2}, "abc");
  EXPECT_THAT(is_accused({1, 2}, "c"), Contains("a: recover 1.3 abc"));
  Opens({1, 3}, "abc");
  EXPECT_THAT(is_accused({1, 3}, "c"),
              ElementsAre("persist 4", "b: recover 1.4 bc", "c: recover 1.4 bc"));
}

// It reports only that its link to each of the others is broken.
TEST_F(CoordinatorCoreTest, AMemberThatAccusesAllOthersIsEvictedItself) {
  Running("abc");
  const auto accuses = [&](MembershipId in) {
    Says('a', Lost{.membership = in, .accused = {Id('a'), Id('b'), Id('c')}});
    return After(500ms, "abc");
  };
  EXPECT_THAT(accuses({1, 1}), Contains("a: recover 1.2 abc"));
  Opens({1, 2}, "abc");
  EXPECT_THAT(accuses({1, 2}), ElementsAre("persist 3", "b: recover 1.3 bc", "c: recover 1.3 bc"));
}

TEST_F(CoordinatorCoreTest, TheStateIsNotEvictedWithItsOnlyHolder) {
  Running("a");
  Wanted("abc");
  for (const char name : {'b', 'c'}) Hello(name);
  for (const char name : {'a', 'b', 'c'}) Says(name, Prepared{{1, 2}});
  const auto is_accused = [&](MembershipId in) {
    for (const char name : {'a', 'b', 'c'}) {
      Says(name, Entered{.membership = MembershipOf(in, "abc")});
    }
    for (const char name : {'b', 'c'}) Says(name, Lost{.membership = in, .accused = {Id('a')}});
    return After(500ms, "abc");
  };
  EXPECT_THAT(is_accused({1, 2}), Contains("a: recover 1.3 abc"));
  EXPECT_THAT(is_accused({1, 3}), ElementsAre("persist 4", "a: recover 1.4 a"));
}

TEST_F(CoordinatorCoreTest, AnAnnouncedSwitchMayHaveTakenPlaceWhenSomebodyDies) {
  Running("ab");
  Hello('c');
  Wanted("ac", "b");
  Says('a', Prepared{{1, 2}});
  Says('c', Prepared{{1, 2}});
  Dies('c');
  Says('a', Lost{.membership = {1, 1}, .accused = {Id('b')}});
  EXPECT_THAT(After(1s, "ab"), IsEmpty()) << "the joiner may come back";
  EXPECT_THAT(After(3s, "ab"), ElementsAre("persist 3", "a: recover 1.3 ab", "b: recover 1.3 ab"))
      << "the leaver may hold the state that the other needs";
  Says('a', Lost{.membership = {1, 3}, .accused = {Id('b')}});
  EXPECT_THAT(After(2900ms, "ab"), IsEmpty()) << "the joiner may hold the state, too";
  EXPECT_THAT(After(200ms, "ab"), Contains("a: recover 1.4 a"));
}

// The link between a and b broke in the tick at whose end c switched: a and b wait for a recovery.
TEST_F(CoordinatorCoreTest, AMemberThatStoppedBeforeASwitchReceivesIt) {
  Running("abc");
  Wanted("a", "bc");
  Says('a', Prepared{{1, 2}});
  Says('a', Lost{.membership = {1, 1}, .accused = {Id('b')}});
  EXPECT_THAT(Says('c', Entered{.membership = MembershipOf({1, 2}, "a")}),
              ElementsAre("a: recover 1.2 a"));
}

TEST_F(CoordinatorCoreTest, AMemberThatStopsAfterASwitchReceivesIt) {
  Running("abc");
  Wanted("a", "bc");
  Says('a', Prepared{{1, 2}});
  EXPECT_THAT(Says('c', Entered{.membership = MembershipOf({1, 2}, "a")}), IsEmpty());
  EXPECT_THAT(Says('a', Lost{.membership = {1, 1}, .accused = {Id('b')}}),
              ElementsAre("a: recover 1.2 a"));
}

TEST_F(CoordinatorCoreTest, AnAnnouncedSwitchDoesNotTakePlaceWithTheDead) {
  Running("ab");
  Hello('c');
  Wanted("abc");
  for (const char name : {'a', 'b', 'c'}) Says(name, Prepared{{1, 2}});
  Wanted("ab", "", "c");
  EXPECT_THAT(After(500ms, "ab"),
              ElementsAre("persist 3", "a: recover 1.3 ab", "b: recover 1.3 ab"));
}

TEST_F(CoordinatorCoreTest, AnAnnouncementIsLostWithItsConnection) {
  Running("ab");
  Hello('c');
  Wanted("abc");
  for (const char name : {'b', 'c'}) Says(name, Prepared{{1, 2}});
  EXPECT_THAT(Says('a', Prepared{{1, 2}}), ElementsAre("a: announce 1.2 abc"));
  EXPECT_THAT(Dies('a'), ElementsAre("b: announce 1.2 abc"));
}

// A member that catches up sends no trailer that could carry the announcement.
TEST_F(CoordinatorCoreTest, AMemberThatCatchesUpAnnouncesNothing) {
  Running("a");
  Hello('c');
  Hello('d');
  Wanted("acd");
  for (const char name : {'a', 'c', 'd'}) Says(name, Prepared{{1, 2}});
  for (const char name : {'a', 'c', 'd'}) {
    Says(name, Entered{.membership = MembershipOf({1, 2}, "acd")});
  }
  for (const char name : {'a', 'd'}) Says(name, Opened{.membership = {1, 2}, .applied_ticks = 9});
  Says('c', Progress{.membership = MembershipId{1, 2}, .following = true});
  Wanted("ac", "d");
  Says('c', Prepared{{1, 3}});
  EXPECT_THAT(Says('a', Prepared{{1, 3}}), ElementsAre("a: announce 1.3 ac"));
  EXPECT_THAT(Dies('a'), ElementsAre("d: announce 1.3 ac"));
}

// Another process of this term issued it, and was killed before it had persisted its counter.
TEST_F(CoordinatorCoreTest, AProposalIsWithdrawnWhenAnotherMembershipIsHeardOf) {
  Running("a");
  Wanted("ac");
  EXPECT_THAT(Hello('c'), ElementsAre("persist 2", "a: prepare 1.2 ac", "c: prepare 1.2 ac"));
  EXPECT_THAT(Says('a', Entered{.membership = MembershipOf({1, 5}, "a")}),
              ElementsAre("a: withdraw 1.2", "c: withdraw 1.2"));
}

TEST_F(CoordinatorCoreTest, MessagesOfAnEarlierConnectionAreSentAgain) {
  const Membership one = MembershipOf({1, 1}, "ab");
  Running("ab");
  EXPECT_THAT(Wanted("a", "b"),
              ElementsAre("persist 2", "a: prepare 1.2 a", "b: leave at a boundary"));
  EXPECT_THAT(Hello('a', one), ElementsAre("close old 1", "a: prepare 1.2 a"));
  Dies('b');
  EXPECT_THAT(Hello('b', one), ElementsAre("b: leave at a boundary"));
  Says('a', Prepared{{1, 2}});
  EXPECT_THAT(Opens({1, 2}, "a"), ElementsAre("b: leave at once"));
  Dies('b');
  EXPECT_THAT(Hello('b', one), ElementsAre("b: leave at once"));
}

TEST_F(CoordinatorCoreTest, ALearnerThatMissedItsMembershipReceivesItAgain) {
  Running("ab");
  Dies('b');
  Says('a', Lost{.membership = {1, 1}, .accused = {}});
  Hello('b', MembershipOf({1, 1}, "ab"));
  After(1s, "ab");  // recover 1.2
  EXPECT_THAT(Hello('b', MembershipOf({1, 1}, "ab")),
              ElementsAre("close old 3", "b: recover 1.2 ab"));
}

TEST_F(CoordinatorCoreTest, ANewProcessOfAPodEndsTheOneBefore) {
  Running("ab");
  connection_['x'] = ++last_connection_;
  LearnerId restarted = Id('b');
  restarted.nonce = 7;
  EXPECT_THAT(Says('x', pliant::Hello{.learner = restarted}), ElementsAre("close b"));
  EXPECT_THAT(After(300ms, "a"), testing::Contains("a: recover 1.2 a"));
}

TEST_F(CoordinatorCoreTest, ARestartedOneLearnsTheMembershipFromItsMembers) {
  Start({.term = 2, .counter = 0});
  EXPECT_THAT(Wanted("abc"), IsEmpty());
  EXPECT_THAT(Hello('c'), IsEmpty());
  const Membership five = MembershipOf({1, 5}, "ab");
  EXPECT_THAT(Hello('a', five), IsEmpty());
  EXPECT_THAT(After(5s, "ac"), IsEmpty())
      << "no removals and no joins before all members have reported";
  EXPECT_THAT(Hello('b', five), IsEmpty());
  Says('a', Opened{.membership = {1, 5}});
  EXPECT_THAT(
      Says('b', Opened{.membership = {1, 5}}),
      ElementsAre("persist 1", "a: prepare 2.1 abc", "b: prepare 2.1 abc", "c: prepare 2.1 abc"));
}

TEST_F(CoordinatorCoreTest, ARestartedOneBringsTheHalfThatWasNotTold) {
  Start({.term = 1, .counter = 6});
  Wanted("ab");
  EXPECT_THAT(Hello('b', MembershipOf({1, 5}, "abc")), IsEmpty());
  EXPECT_THAT(Hello('a', MembershipOf({1, 6}, "ab")), ElementsAre("b: recover 1.6 ab"));
}

// a left ab for bc, and waits until they hold its state. b, which may hold it too, is dead.
TEST_F(CoordinatorCoreTest, ARestartedOneCallsBackWhoHoldsTheState) {
  Start({.term = 2});
  Wanted("c", "a", "b");
  EXPECT_THAT(Hello('a', MembershipOf({1, 2}, "bc"), MembershipOf({1, 1}, "ab")), IsEmpty());
  EXPECT_THAT(Hello('c', MembershipOf({1, 2}, "bc")), ElementsAre("a: leave at a boundary"));
  Says('c', Lost{.membership = {1, 2}, .accused = {Id('b')}});
  EXPECT_THAT(After(500ms, "ac"),
              ElementsAre("persist 1", "c: recover 2.1 ca", "a: recover 2.1 ca"));
}

// a stopped before bc replaced ab.
TEST_F(CoordinatorCoreTest, ARestartedOneCallsWhoMissedAMembership) {
  Start({.term = 2});
  Wanted("ac", "", "b");
  Hello('c', MembershipOf({1, 2}, "bc"));
  Hello('a', MembershipOf({1, 1}, "ab"));
  EXPECT_THAT(After(500ms, "ac"),
              ElementsAre("persist 1", "c: recover 2.1 ca", "a: recover 2.1 ca"));
}

TEST_F(CoordinatorCoreTest, ARestartedOneLetsGoWhomNobodyNeeds) {
  const Membership one = MembershipOf({1, 1}, "ab");
  const Membership two = MembershipOf({1, 2}, "bc");
  const auto goes = ElementsAre("a: leave at once");
  Start({.term = 2});
  Wanted("bc", "a");
  for (const char name : {'b', 'c'}) Hello(name, two);
  for (const char name : {'b', 'c'}) Says(name, Opened{.membership = {1, 2}});
  EXPECT_THAT(Hello('a', two, one), goes) << "all hold the state";

  Start({.term = 2});
  Wanted("bc", "a");
  Hello('b', MembershipOf({1, 3}, "bc"));
  EXPECT_THAT(Hello('a', two, one), IsEmpty());
  EXPECT_THAT(Hello('c', MembershipOf({1, 3}, "bc")), goes)
      << "no member waits for the state of its old membership";
}

// b continues without the tick that only a has.
TEST_F(CoordinatorCoreTest, ALearnerThatWasNotCalledLeavesWhenTheOthersHaveCaughtUp) {
  Start({.term = 2});
  Wanted("b", "a");
  Hello('b', MembershipOf({1, 2}, "b"));
  Says('b', Opened{.membership = {1, 2}, .applied_ticks = 8});
  connection_['a'] = ++last_connection_;
  EXPECT_THAT(Says('a', pliant::Hello{.learner = Id('a'),
                                      .membership = MembershipOf({1, 1}, "ab"),
                                      .applied_ticks = 9,
                                      .has_state = true}),
              IsEmpty());
  EXPECT_THAT(Says('b', Progress{.membership = MembershipId{1, 2}, .tick = 9}),
              ElementsAre("a: leave at once"));
}

TEST_F(CoordinatorCoreTest, ARestartedOneWaitsForTheLastCheckpoint) {
  const Membership nobody = MembershipOf({1, 2}, "");
  Start({.term = 2});
  Wanted("c", "ab");
  for (const char name : {'a', 'b'}) Hello(name, nobody, MembershipOf({1, 1}, "ab"));
  Hello('c');
  EXPECT_THAT(After(2s, "abc"), IsEmpty());
  Says('a', Left{});
  EXPECT_THAT(Says('b', Left{}), ElementsAre("close b", "persist 1", "c: prepare 2.1 c"));
}

// a should have written it.
TEST_F(CoordinatorCoreTest, ARestartedOneHasTheLastCheckpointWrittenByThoseWhoAreLeft) {
  const Membership nobody = MembershipOf({1, 2}, "");
  Start({.term = 2});
  Wanted("", "b", "a");
  EXPECT_THAT(Hello('b', nobody, MembershipOf({1, 1}, "ab")),
              ElementsAre("b: leave at a boundary"));
  Says('b', Lost{.membership = {1, 2}, .accused = {Id('a')}});
  EXPECT_THAT(After(500ms, "b"), ElementsAre("persist 1", "b: recover 2.1 b"));
}

TEST_F(CoordinatorCoreTest, ARestartedOneDoesNotWaitForever) {
  Start({.term = 2});
  Wanted("ab");
  Hello('a', MembershipOf({1, 5}, "ab"));
  Says('a', Lost{.membership = {1, 5}, .accused = {Id('b')}});
  EXPECT_THAT(After(29s, "a"), IsEmpty());
  EXPECT_THAT(After(2s, "a"), ElementsAre("persist 1", "a: recover 2.1 a"));
}

TEST_F(CoordinatorCoreTest, AnOldOneGivesWayToTheNextTerm) {
  Running("ab");
  EXPECT_THAT(Says('a', Entered{.membership = MembershipOf({2, 1}, "ab")}),
              ElementsAre("close a", "close b"));
  EXPECT_THAT(Hello('a', MembershipOf({2, 1}, "ab")), ElementsAre("close a"));
  EXPECT_THAT(After(60s), IsEmpty());
  EXPECT_THAT(Hello('b'), ElementsAre("close b")) << "a new process, which knows no term yet";
  EXPECT_THAT(After(60s), IsEmpty());
}

TEST_F(CoordinatorCoreTest, ItsIdsAreNewWhateverWasPersisted) {
  Start({.term = 1, .counter = 8});
  Wanted("a");
  EXPECT_THAT(Hello('a', MembershipOf({1, 12}, "ab")), IsEmpty());
  Wanted("a", "", "b");
  EXPECT_THAT(After(300ms, "a"), ElementsAre("persist 13", "a: recover 1.13 a"));
}

// ---- Learners of two ranks ----

TEST_F(CoordinatorCoreTest, ALearnerJoinsWithAllItsRanks) {
  ranks_ = 2;
  Start({});
  Wanted("ab");
  for (const char rank : {'a', 'b', 'B'}) EXPECT_THAT(Hello(rank), IsEmpty());
  EXPECT_THAT(After(400ms), IsEmpty()) << "a's second rank is missing";
  EXPECT_THAT(Hello('A'), ElementsAre("persist 1", "a: prepare 1.1 aAbB", "A: prepare 1.1 aAbB",
                                      "b: prepare 1.1 aAbB", "B: prepare 1.1 aAbB"));
}

TEST_F(CoordinatorCoreTest, WithoutOneOfItsRanksALearnerIsNotTakenIn) {
  ranks_ = 2;
  Start({});
  Wanted("ab");
  for (const char rank : {'a', 'b', 'B'}) Hello(rank);
  EXPECT_THAT(After(600ms), ElementsAre("persist 1", "b: prepare 1.1 bB", "B: prepare 1.1 bB"));
}

TEST_F(CoordinatorCoreTest, ALearnerLeavesWithAllItsRanks) {
  ranks_ = 2;
  RunningRanks("ab", "aAbB");
  EXPECT_THAT(Says('B', Leaving{}), testing::Contains("a: prepare 1.2 aA"));
  const JobProgress progress = core_->progress();
  ASSERT_EQ(progress.learners.size(), 2U) << "one entry a learner";
  EXPECT_EQ(progress.learners[1].state, LearnerState::kLeaving);
}

TEST_F(CoordinatorCoreTest, ALostRankTakesItsLearnerWithIt) {
  ranks_ = 2;
  RunningRanks("ab", "aAbB");
  Dies('B');
  Lines lines;
  for (const char rank : {'a', 'A', 'b'}) {
    Append(lines,
           Says(rank, Lost{.membership = {1, 1}, .tick = 1, .accused = {Id('B')}, .cause = "EOF"}));
  }
  Append(lines, After(1s, "aAb"));
  EXPECT_THAT(lines, ElementsAre("persist 2", "a: recover 1.2 aA", "A: recover 1.2 aA"));
  EXPECT_EQ(core_->progress().resizes.back().from, 2);
  EXPECT_EQ(core_->progress().resizes.back().to, 1);
}

TEST_F(CoordinatorCoreTest, RemainingRanksOfTheOnlyLearnerKeepTheState) {
  ranks_ = 2;
  RunningRanks("a", "aA");
  Dies('A');
  EXPECT_THAT(
      Says('a', Lost{.membership = {1, 1}, .tick = 1, .accused = {Id('A')}, .cause = "EOF"}),
      ElementsAre("persist 2", "a: recover 1.2 a"));
}

TEST_F(CoordinatorCoreTest, PlansAreOrdered) {
  Start({});
  const Plan later{.version = {2, 3}, .learners = {{"a", "u", WantedState::kWanted}}};
  ASSERT_TRUE(core_->SetPlan(later, now_));
  EXPECT_TRUE(core_->SetPlan(later, now_)) << "the answer may have been lost";
  for (const PlanVersion lower : {PlanVersion{2, 2}, PlanVersion{1, 99}}) {
    const auto refused = core_->SetPlan({.version = lower}, now_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  }
  EXPECT_EQ(core_->progress().plan_accepted, later.version);
  EXPECT_TRUE(core_->SetPlan({.version = {3, 1}}, now_));
}

TEST_F(CoordinatorCoreTest, ALearnerThatNoPlanKnowsIsNotSentAwayAtOnce) {
  Start({});
  Wanted("a");
  EXPECT_THAT(Hello('b'), IsEmpty());
  EXPECT_THAT(After(29s, "b"), IsEmpty()) << "a plan that lists it may be in transit";
  EXPECT_THAT(After(2s, "b"), ElementsAre("b: leave at once"));
}

TEST_F(CoordinatorCoreTest, AnotherFingerprintIsRefusedAndNamed) {
  Start({});
  Wanted("ab");
  Hello('a');
  connection_['b'] = ++last_connection_;
  EXPECT_THAT(Says('b', pliant::Hello{.learner = Id('b'), .fingerprint = {{"cpu", "avx2"}}}),
              ElementsAre("b: refused", "close b"));
  const JobProgress progress = core_->progress();
  EXPECT_EQ(progress.problem.reason, "Fingerprint");
  EXPECT_EQ(progress.problem.message, "learner b differs from a; cpu is \"avx2\", not nothing");
  ASSERT_EQ(progress.learners.size(), 2U);
  EXPECT_EQ(progress.learners[1].state, LearnerState::kRefused);
}

// One container has a GPU, the other has none, and the program computes on CPUs anyway.
TEST_F(CoordinatorCoreTest, GpuProblemsOfContainersMayDiffer) {
  Start({});
  Wanted("ab");
  Hello('a');
  connection_['b'] = ++last_connection_;
  EXPECT_THAT(Says('b', pliant::Hello{.learner = Id('b'),
                                      .fingerprint = {{kFingerprintGpuProblem, "it has no CUDA"}}}),
              Not(Contains("b: refused")));
  connection_['c'] = ++last_connection_;
  EXPECT_THAT(Says('c', pliant::Hello{.learner = Id('c'),
                                      .fingerprint = {{kFingerprintGpuProblem, "it is old"},
                                                      {"cpu", "avx2"}}}),
              Contains("c: refused"));
  EXPECT_EQ(core_->progress().problem.message,
            "learner c differs from a; cpu is \"avx2\", not nothing");
}

TEST_F(CoordinatorCoreTest, GpusThatTheProgramCannotUseAreReported) {
  Start({});
  Wanted("a");
  connection_['a'] = ++last_connection_;
  Says('a', pliant::Hello{.learner = Id('a'),
                          .fingerprint = {{kFingerprintGpuProblem, "it has no CUDA"}}});
  EXPECT_EQ(core_->progress().problem, Problem{}) << "it may never train";
  Says('a', Prepared{{1, 1}});
  Opens({1, 1}, "a");
  EXPECT_EQ(core_->progress().problem, (Problem{"GpusUnusable", "it has no CUDA"}));
}

TEST_F(CoordinatorCoreTest, AnotherProtocolIsRefused) {
  Start({});
  connection_['b'] = ++last_connection_;
  EXPECT_THAT(Says('b', pliant::Hello{.protocol = kProtocolVersion + 1, .learner = Id('b')}),
              ElementsAre("b: refused", "close b"));
}

// A problem is cleared when ticks are committed one minute after its last occurrence.
TEST_F(CoordinatorCoreTest, AProblemIsTakenBackWhenTheJobHasGotOverIt) {
  Running("ab");
  Tick tick = 1;
  const auto trains = [&](std::chrono::seconds duration, Tick ticks_a_second) {
    for (int i = 0; i < duration.count(); ++i) {
      now_ += 1s;
      tick += ticks_a_second;
      Says('a', Progress{.membership = MembershipId{1, 2}, .tick = tick});
      core_->OnTimer(now_);
    }
  };
  const auto problem = [&] { return core_->progress().problem.reason; };
  const auto is_refused = [&] {
    connection_['c'] = ++last_connection_;
    Says('c', pliant::Hello{.protocol = kProtocolVersion + 1, .learner = Id('c')});
  };

  Says('b', Left{.applied_ticks = 1, .reason = LeftReason::kFailed, .message = "no data"});
  EXPECT_EQ(core_->progress().problem, (Problem{"LearnerFailed", "b: no data"}));
  After(1s);
  Opens({1, 2}, "a");
  trains(58s, 1);
  EXPECT_EQ(problem(), "LearnerFailed") << "the next learner may fail for the same reason";
  trains(2s, 1);
  EXPECT_EQ(problem(), "");

  for (int i = 0; i < 5; ++i) {
    is_refused();
    trains(30s, 1);
    EXPECT_EQ(problem(), "Protocol") << "it recurs";
  }
  trains(31s, 1);
  EXPECT_EQ(problem(), "");

  is_refused();
  trains(300s, 0);
  EXPECT_EQ(problem(), "Protocol") << "no tick is committed";
  trains(1s, 1);
  EXPECT_EQ(problem(), "");
}

TEST_F(CoordinatorCoreTest, AProblemIsAsLongAsALearnerCanRead) {
  Running("ab");
  Says('b', Left{.reason = LeftReason::kFailed, .message = std::string(100'000, 'x')});
  EXPECT_EQ(core_->progress().problem.message, "b: " + std::string(4093, 'x'));
}

TEST_F(CoordinatorCoreTest, ALearnerThatDoesNotSayHelloIsDisconnected) {
  Start({});
  connection_['b'] = ++last_connection_;
  EXPECT_THAT(Says('b', Progress{}), ElementsAre("close b"));
}

TEST_F(CoordinatorCoreTest, OneWhoCompletesEndsTheJob) {
  Running("ab");
  Hello('c');
  EXPECT_THAT(
      Says('a',
           Left{.applied_ticks = 99, .reason = LeftReason::kCompleted, .parameters_sha256 = "abc"}),
      ElementsAre("close a", "b: leave at once", "c: leave at once"));
  EXPECT_EQ(core_->progress().state, JobState::kCompleted);
  EXPECT_EQ(core_->progress().parameters_sha256, "abc");
  EXPECT_THAT(After(60s, "bc"), IsEmpty());
}

TEST_F(CoordinatorCoreTest, NamesTheOneThatTheOthersWaitFor) {
  Running("abc");
  EXPECT_EQ(core_->progress().slowest, std::nullopt);
  for (const auto& [name, seconds] : {std::pair{'a', 0.01}, {'b', 0.04}, {'c', 0.02}}) {
    Says(name, Progress{.membership = MembershipId{1, 1},
                        .times = TickTimes{.shard_seconds = seconds, .wait_seconds = 0.5}});
  }
  const JobProgress progress = core_->progress();
  EXPECT_EQ(progress.slowest, (Straggler{.id = Id('b'), .slowdown = 2}));
  EXPECT_EQ(progress.learners.front().times->wait_seconds, 0.5);
  const std::string text = Encode(progress);
  EXPECT_THAT(text, testing::HasSubstr(R"("straggler":{"name":"b","podUid":"u","slowdown":2.0})"));
}

TEST_F(CoordinatorCoreTest, NamesTheRankThatTheOthersWaitFor) {
  ranks_ = 2;
  RunningRanks("ab", "aAbB");
  for (const auto& [rank, seconds] : {std::pair{'a', 0.01}, {'A', 0.01}, {'b', 0.01}, {'B', 0.5}}) {
    Says(rank, Progress{.membership = MembershipId{1, 1},
                        .times = TickTimes{.shard_seconds = seconds, .data_wait_seconds = 0.25}});
  }
  const JobProgress progress = core_->progress();
  EXPECT_EQ(progress.slowest, (Straggler{.id = Id('B'), .slowdown = 50}));
  ASSERT_EQ(progress.learners.size(), 2U) << "one entry a learner";
  EXPECT_EQ(progress.learners[0].times->shard_seconds, 0.01);
  EXPECT_EQ(progress.learners[1].times->shard_seconds, 0.5) << "the slowest rank's times";
  EXPECT_THAT(
      Encode(progress),
      testing::HasSubstr(R"("straggler":{"localRank":1,"name":"b","podUid":"u","slowdown":50.0})"));
}

TEST_F(CoordinatorCoreTest, ReportsTheLongestPauseOfThoseWhoWereMembersBefore) {
  Running("ab");
  Wanted("abc");
  Hello('c');
  for (const char name : std::string("abc")) Says(name, Prepared{{1, 2}});
  const Membership next = MembershipOf({1, 2}, "abc");
  for (const char name : std::string("abc")) Says(name, Entered{.membership = next});
  Says('a', Opened{.membership = {1, 2}, .pause_seconds = 0.2});
  Says('b', Opened{.membership = {1, 2}, .pause_seconds = 0.3});
  Says('c', Opened{.membership = {1, 2}, .pause_seconds = 9});
  EXPECT_EQ(core_->progress().resizes.back().longest_pause_seconds, 0.3);
}

TEST_F(CoordinatorCoreTest, ALearnerThatLeavesByItselfIsTheReason) {
  Running("abc");
  Says('c', Leaving{.grace_seconds = 30});
  for (const char name : std::string("ab")) Says(name, Prepared{{1, 2}});
  const Membership next = MembershipOf({1, 2}, "ab");
  for (const char name : std::string("ab")) Says(name, Entered{.membership = next});
  EXPECT_EQ(core_->progress().resizes.back().reason, "learner c leaves");
}

TEST_F(CoordinatorCoreTest, AResizeSaysWhy) {
  Running("ab");
  Plan plan = PlanOf(++sequence_, "abc");
  plan.reason = "GPUs became free";
  ASSERT_TRUE(core_->SetPlan(plan, now_));
  Hello('c');
  for (const char name : std::string("abc")) Says(name, Prepared{{1, 2}});
  plan.version.sequence = ++sequence_;
  plan.reason = "a later plan with the same learners";
  ASSERT_TRUE(core_->SetPlan(plan, now_));
  const Membership next = MembershipOf({1, 2}, "abc");
  for (const char name : std::string("abc")) Says(name, Entered{.membership = next});
  EXPECT_EQ(core_->progress().resizes.back().reason, "GPUs became free");
  for (const char name : std::string("abc")) Says(name, Opened{.membership = {1, 2}});
  Says('a', Lost{.membership = {1, 2}, .accused = {Id('b')}});
  Says('c', Lost{.membership = {1, 2}, .accused = {}});
  Dies('b');
  EXPECT_EQ(core_->progress().resizes.back().reason, "learner b was lost");
  EXPECT_THAT(Encode(core_->progress()), testing::HasSubstr(R"("reason":"learner b was lost")"));
}

}  // namespace
}  // namespace pliant
