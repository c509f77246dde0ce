#include "trainer/membership/rules.h"

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
