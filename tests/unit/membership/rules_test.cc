#include "trainer/membership/rules.h"

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

LearnerId Id(char name) { return {.name = std::string(1, name)}; }

std::vector<Member> Members(const std::string& names) {
  std::vector<Member> members;
  for (const char name : names) members.push_back({.id = Id(name), .address = {}});
  return members;
}

std::string Names(const std::vector<Member>& members) {
  std::string names;
  for (const Member& member : members) names += member.id.name;
  return names;
}

TEST(NextMembers, KeepsRanksAndAppendsJoiners) {
  const struct {
    const char* name;
    const char* present;
    const char* fates;  // s: stays, l: leaves, a: absent
    const char* joiners;
    int most;
    const char* want;
  } kCases[] = {
      {"the first members", "", "", "ab", 0, "ab"},
      {"nothing changes", "ab", "ss", "", 0, "ab"},
      {"one leaves: the ranks close up", "abc", "sls", "", 0, "ac"},
      {"one joins behind the others", "bc", "ss", "a", 0, "bca"},
      {"a swap is one change", "ab", "sl", "c", 0, "ac"},
      {"no more than allowed", "ab", "ss", "cde", 3, "abc"},
      {"those who stay are not sent away", "abc", "sss", "d", 2, "abc"},
      {"all leave: nobody", "ab", "ll", "", 0, ""},
      {"all leave, others come: the first leaver hands the state on", "ab", "ll", "cd", 0, "acd"},
      {"the one who hands on is not counted", "a", "l", "b", 1, "ab"},
      {"an absent one cannot hand on", "ab", "al", "c", 0, "bc"},
      {"all absent: the state is lost", "ab", "aa", "c", 0, "c"},
  };
  for (const auto& test : kCases) {
    std::vector<MemberFate> fates;
    for (const char fate : std::string(test.fates)) {
      fates.push_back(fate == 's'   ? MemberFate::kStays
                      : fate == 'l' ? MemberFate::kLeaves
                                    : MemberFate::kAbsent);
    }
    const Membership present{.id = {1, 1}, .members = Members(test.present)};
    EXPECT_EQ(Names(NextMembers(present, fates, Members(test.joiners), test.most)), test.want)
        << test.name;
  }
}

TEST(FewestToRemove, LeavesNoBrokenLink) {
  const struct {
    const char* name;
    const char* members;
    std::vector<const char*> broken;
    const char* want;
  } kCases[] = {
      {"no link is broken", "abcd", {}, ""},
      {"of two equally good the later rank goes", "abcd", {"bd"}, "d"},
      {"ranks, not names, decide", "dcba", {"bd"}, "b"},
      {"one is behind all of them", "abcd", {"ab", "bc", "bd"}, "b"},
      {"two pairs", "abcd", {"ab", "cd"}, "bd"},
      {"a triangle", "abcd", {"ab", "bc", "ac"}, "bc"},
      {"a ring of five needs three", "abcde", {"ab", "bc", "cd", "de", "ae"}, "bde"},
      {"who is no member does not count", "ab", {"ax", "xy"}, ""},
  };
  for (const auto& test : kCases) {
    std::set<BrokenLink> broken;
    for (const char* link : test.broken) broken.insert(LinkOf(Id(link[1]), Id(link[0])));
    std::string removed;
    for (const LearnerId& id : FewestToRemove(Members(test.members), broken)) removed += id.name;
    EXPECT_EQ(removed, test.want) << test.name;
  }
}

TEST(FewestToRemove, CopesWithMoreThanItCanTryOut) {
  std::vector<Member> members;
  std::set<BrokenLink> broken;
  for (int i = 0; i < 40; ++i) members.push_back({.id = {.name = std::to_string(100 + i)}});
  for (int i = 1; i < 40; ++i) broken.insert(LinkOf(members[0].id, members[i].id));
  EXPECT_THAT(FewestToRemove(members, broken), testing::ElementsAre(members[0].id));
}

TEST(KeepsBreaking, TwiceAMinuteOrThreeTimesInTen) {
  using std::chrono::seconds;
  const struct {
    std::vector<int> seconds_of_breaks;
    bool want;
  } kCases[] = {
      {{}, false},
      {{5}, false},
      {{5, 64}, true},
      {{5, 65}, false},
      {{5, 66, 127}, true},
      {{5, 300, 604}, true},
      {{5, 300, 605}, false},
      {{5, 10, 605}, false},  // it held for long
      {{5, 1000, 1400, 1599}, true},
  };
  for (const auto& test : kCases) {
    std::vector<TimePoint> breaks;
    for (const int at : test.seconds_of_breaks) breaks.push_back(TimePoint{} + seconds(at));
    EXPECT_EQ(KeepsBreaking(breaks), test.want) << testing::PrintToString(test.seconds_of_breaks);
  }
}

TEST(FindOffenders, TakesTheSideOfTheMore) {
  const struct {
    const char* name;
    const char* members;
    std::vector<const char*> said;  // "1ba": in membership 1, b accuses a
    const char* holders;
    const char* want;  // in membership 3
  } kCases[] = {
      {"nobody says a word", "abc", {}, "abc", ""},
      {"one witness, once", "abc", {"3ba"}, "abc", ""},
      {"of two, too: it may have read wrongly", "ab", {"3ba"}, "ab", ""},
      {"one witness, again", "abc", {"1ba", "3ba"}, "abc", "a"},
      {"of two the accused goes", "ab", {"1ba", "3ba"}, "ab", "a"},
      {"whatever its rank", "ba", {"1ba", "3ba"}, "ab", "a"},
      {"not for what it did before", "ab", {"1ba", "2ba"}, "ab", ""},
      {"each accuses the other: the later rank", "ab", {"1ba", "2ab", "3ba"}, "ab", "b"},
      {"two of two others, at once", "abc", {"3ab", "3cb"}, "abc", "b"},
      {"two of two others, one after the other", "abc", {"1ab", "3cb"}, "abc", "b"},
      {"two of four others are no majority", "abcde", {"3ab", "3cb"}, "abcde", ""},
      {"three of four others are", "abcde", {"3ab", "3cb", "3db"}, "abcde", "b"},
      {"who accuses many reads wrongly", "abc", {"1ab", "2ac", "3ab"}, "abc", "a"},
      {"who accuses its witnesses gains nothing", "abc", {"1ab", "2ba", "3cb"}, "abc", "b"},
      {"two offenders", "abcdef", {"1ab", "1cd", "3ab", "3cd"}, "abcdef", "bd"},
      {"the only one that holds the state stays", "ab", {"1ba", "3ba"}, "a", "b"},
      {"one of several that do goes", "abc", {"1ba", "3ba"}, "ac", "a"},
      {"nobody is known to hold it", "ab", {"1ba", "3ba"}, "", "a"},
      {"who is no member has no say", "ab", {"1xa", "3xa", "3ya", "1bx", "3bx"}, "ab", ""},
  };
  for (const auto& test : kCases) {
    std::set<Violation> violations;
    for (const char* said : test.said) {
      const auto counter = static_cast<std::uint64_t>(said[0] - '0');
      violations.insert(
          Violation{.membership = {1, counter}, .witness = Id(said[1]), .accused = Id(said[2])});
    }
    std::set<LearnerId> holders;
    for (const char holder : std::string(test.holders)) holders.insert(Id(holder));
    std::string offenders;
    for (const LearnerId& id :
         FindOffenders(Members(test.members), violations, MembershipId{1, 3}, holders)) {
      offenders += id.name;
    }
    EXPECT_EQ(offenders, test.want) << test.name;
  }
}

TEST(FindSlowest, IsMeasuredByTheOthers) {
  const auto id = [](const char* name) { return LearnerId{.name = name}; };
  const struct {
    std::vector<std::pair<LearnerId, double>> seconds;
    std::optional<Straggler> want;
  } kCases[] = {
      {{}, std::nullopt},
      {{{id("a"), 1}}, std::nullopt},
      {{{id("a"), 1}, {id("b"), 3}}, Straggler{id("b"), 3}},
      {{{id("a"), 2}, {id("b"), 2}}, Straggler{id("a"), 1}},
      {{{id("a"), 1}, {id("b"), 9}, {id("c"), 2}, {id("d"), 8}}, Straggler{id("b"), 4.5}},
      {{{id("a"), 0}, {id("b"), 3}}, std::nullopt},
  };
  for (const auto& c : kCases) EXPECT_EQ(FindSlowest(c.seconds), c.want);
}

}  // namespace
}  // namespace pliant
