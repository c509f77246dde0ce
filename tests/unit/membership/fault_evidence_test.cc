#include "trainer/membership/fault_evidence.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"

namespace pliant {
namespace {

// a, b, c and d train from second 10 on; times are in seconds.
class FaultEvidenceTest : public testing::Test {
 protected:
  static TimePoint At(double seconds) {
    return TimePoint{} +
           std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
  }

  void SetUp() override {
    faults_.emplace(CoordinatorOptions{}, At(0));
    Enter("abcd", 10);
  }
  void Enter(const std::string& names, double at, bool open = true) {
    history_.MakeCurrent(MembershipOf({1, ++counter_}, names), false, At(at));
    if (!open) return;
    for (const char name : names) history_.AddOpened(Id(name), 1);
    history_.DropSuperseded();
    faults_->OnAllOpened(*history_.current());
  }
  void Report(const std::string& reporters, const std::string& accused, double at) {
    std::vector<LearnerId> ids;
    for (const char name : accused) ids.push_back(Id(name));
    for (const char reporter : reporters) {
      faults_->Report(Id(reporter), ids, At(at));
      roster_.RecordHeard(Id(reporter), At(at));
    }
  }
  bool Detect(double at) { return faults_->Detect(history_, std::nullopt, roster_, At(at)); }
  // For example "abc", "ab, not c", "wait".
  std::string Resolve(double at) {
    const auto recovery =
        faults_->Resolve(history_.Candidates(roster_, std::nullopt), roster_, history_, At(at));
    if (!recovery) return "wait";
    std::string text = Names(recovery->survivors);
    if (!recovery->evicted.empty()) text += ", not ";
    for (const LearnerId& id : recovery->evicted) text += NameOf(id);
    return text;
  }
  // Breaks the link between the two, and resolves with the remaining members.
  std::string Breaks(const std::string& link, double at) {
    Report(link.substr(0, 1), link.substr(1), at);
    for (const auto& [id, unused] : roster_.learners()) roster_.RecordHeard(id, At(at + 0.1));
    const std::string text = Resolve(at + 0.5);
    faults_->Reset();
    return text;
  }

  std::uint64_t counter_ = 0;
  Roster roster_ = RosterOf("abcdef", At(9));
  MembershipHistory history_;
  std::optional<FaultEvidence> faults_;
};

TEST_F(FaultEvidenceTest, DetectsWhoIsGoneAndWhoHangs) {
  EXPECT_FALSE(Detect(11));
  roster_.Disconnect(Id('c'), At(12));
  EXPECT_FALSE(Detect(19)) << "it may reconnect";
  EXPECT_TRUE(Detect(20));
  EXPECT_EQ(faults_->broken_since(), At(20));
  faults_->Reset();
  history_.OnProgress(Id('a'), {.tick = 7}, At(21));
  EXPECT_FALSE(Detect(30)) << "ticks are committed";
  roster_.SetLeft(Id('b'), LeftReason::kFailed);
  EXPECT_TRUE(Detect(30));
}

TEST_F(FaultEvidenceTest, DetectsThatTheAnnouncedMembershipCannotTakePlace) {
  const Membership announced = MembershipOf({1, 9}, "ae");
  EXPECT_FALSE(faults_->Detect(history_, announced, roster_, At(11)));
  roster_.SetLeft(Id('e'), LeftReason::kFailed);
  EXPECT_TRUE(faults_->Detect(history_, announced, roster_, At(11)));
}

TEST_F(FaultEvidenceTest, WaitsForThoseWhoMayComeBack) {
  const struct {
    const char* name;
    std::string accused;  // named by a
    double gone_at;       // when c disconnects; 0: never. The report is at second 20
    bool opened;
    double settled_at;
  } kCases[] = {
      {"others may report more", "d", 0, true, 20.2},
      {"peers and coordinator lost it together", "c", 20, true, 20.2},
      {"and a little later", "c", 19, true, 20.2},
      {"lost by its peers only then", "c", 18.9, true, 20.5},
      {"no other member holds the state", "c", 20, false, 20.5},
      {"its peers did not lose it", "d", 20, true, 23},
      {"nor before", "d", 15, true, 23},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    faults_.emplace(CoordinatorOptions{}, At(0));
    roster_ = RosterOf("abcdef", At(9));
    Enter("abcd", 10, true);
    if (!test.opened) Enter("abcd", 11, false);
    if (test.gone_at > 0) roster_.Disconnect(Id('c'), At(test.gone_at));
    Report("a", test.accused, 20);
    for (const char name : std::string("bd")) roster_.RecordHeard(Id(name), At(20.1));
    EXPECT_EQ(Resolve(test.settled_at - 0.01), "wait");
    EXPECT_EQ(Resolve(test.settled_at), test.gone_at > 0 ? "abd" : "abcd");
  }
}

TEST_F(FaultEvidenceTest, DoesNotWaitWhenAllHaveReported) {
  roster_.Disconnect(Id('d'), At(20));
  Report("abc", "d", 20);
  EXPECT_EQ(Resolve(20), "abc");
  EXPECT_THAT(faults_->Reset(), testing::ElementsAre(Id('a'), Id('b'), Id('c')));
  EXPECT_FALSE(faults_->broken_since());
}

TEST_F(FaultEvidenceTest, TheAccusedHaveToSpeak) {
  Report("abd", "c", 20);
  EXPECT_EQ(Resolve(25), "wait") << "it is connected, but may hang";
  roster_.RecordHeard(Id('c'), At(25));
  EXPECT_EQ(Resolve(25), "abcd");
}

TEST_F(FaultEvidenceTest, ALinkThatKeepsBreakingCostsOneEnd) {
  EXPECT_EQ(Breaks("bc", 20), "abcd");
  EXPECT_EQ(Breaks("cb", 40), "abd, not c") << "twice within a minute, whichever end reports";
  EXPECT_EQ(Breaks("ad", 60), "abd, not c") << "the eviction holds in the next try";
  Enter("abcd", 70);
  EXPECT_EQ(Breaks("ab", 80), "abcd") << "the members have trained in between";
}

TEST_F(FaultEvidenceTest, ABrokenLinkIsForgotten) {
  Breaks("bc", 20);
  EXPECT_EQ(Breaks("bc", 40), "abd, not c");
  EXPECT_EQ(Breaks("a", 99), "abd, not c");
  EXPECT_EQ(Breaks("a", 101), "abcd");
}

TEST_F(FaultEvidenceTest, TheEndWithMoreBreaksWithinTheHourGoes) {
  Breaks("bd", 20);
  Breaks("bc", 3610);
  EXPECT_EQ(Breaks("bc", 3619), "acd, not b");
  Enter("abcd", 3700);
  EXPECT_EQ(Breaks("bc", 3790), "abd, not c") << "b and d broke more than an hour ago";
}

TEST_F(FaultEvidenceTest, OnlySurvivorsHaveLinks) {
  roster_.Disconnect(Id('d'), At(10));
  EXPECT_EQ(Breaks("ad", 20), "abc");
  EXPECT_EQ(Breaks("ad", 30), "abc");
}

TEST_F(FaultEvidenceTest, ALearnerIsLostWithAnyOfItsRanks) {
  roster_ = RosterOf("aAbB", At(9), 2);
  history_ = {};
  Enter("aAbB", 10);
  roster_.Disconnect(Id('B'), At(20));
  Report("aAb", "B", 20);
  EXPECT_EQ(Resolve(20), "aA");
  roster_.Disconnect(Id('A'), At(20));
  faults_->Reset();
  Report("ab", "AB", 20);
  EXPECT_EQ(Resolve(20), "ab") << "no complete learner would hold the state";
}

}  // namespace
}  // namespace pliant
