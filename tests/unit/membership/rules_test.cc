#include "trainer/membership/rules.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"

namespace pliant {
namespace {

TEST(NextMembers, KeepsRanksAndAppendsJoiners) {
  const struct {
    const char* name;
    const char* present;
    const char* dispositions;  // s: stays, l: leaves, a: absent
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
      {"learners that stay are never removed", "abc", "sss", "d", 2, "abc"},
      {"all leave: no members", "ab", "ll", "", 0, ""},
      {"all leave, others come: the first leaver hands the state on", "ab", "ll", "cd", 0, "acd"},
      {"the member that hands the state on does not count", "a", "l", "b", 1, "ab"},
      {"an absent one cannot hand on", "ab", "al", "c", 0, "bc"},
      {"all absent: the state is lost", "ab", "aa", "c", 0, "c"},
  };
  for (const auto& test : kCases) {
    std::vector<MemberDisposition> dispositions;
    for (const char letter : std::string(test.dispositions)) {
      dispositions.push_back(letter == 's'   ? MemberDisposition::kStays
                             : letter == 'l' ? MemberDisposition::kLeaves
                                             : MemberDisposition::kAbsent);
    }
    const Membership present{.id = {1, 1}, .members = Members(test.present)};
    EXPECT_EQ(Names(NextMembers(present, dispositions, Members(test.joiners), test.most)),
              test.want)
        << test.name;
  }
}

TEST(EvictionSet, LeavesNoBrokenLink) {
  using Links = std::vector<const char*>;
  const struct {
    const char* name;
    const char* members;
    Links broken;
    Links earlier;  // links that broke recently, but are not broken now
    const char* holders;
    const char* want;
  } kCases[] = {
      {"no link is broken", "abcd", {}, {"ab"}, "abcd", ""},
      {"of two equal choices the later rank is evicted", "abcd", {"bd"}, {}, "abcd", "d"},
      {"ranks, not names, decide", "dcba", {"bd"}, {}, "abcd", "b"},
      {"the one with earlier broken links is evicted", "abcd", {"bd"}, {"bx"}, "abcd", "b"},
      {"more of them", "abcd", {"bd"}, {"bx", "bc", "dx"}, "abcd", "b"},
      {"links that are broken count more", "abcd", {"bc", "bd"}, {"cx", "cy", "cz"}, "abcd", "b"},
      {"one is behind all of them", "abcd", {"ab", "bc", "bd"}, {}, "abcd", "b"},
      {"two pairs", "abcd", {"ab", "cd"}, {}, "abcd", "bd"},
      {"a triangle", "abcd", {"ab", "bc", "ac"}, {}, "abcd", "bc"},
      {"a ring of five needs three", "abcde", {"ab", "bc", "cd", "de", "ae"}, {}, "abcde", "bce"},
      {"greedy: x is one more than necessary",
       "xabcdef",
       {"xa", "xb", "xc", "ad", "be", "cf"},
       {},
       "xabcdef",
       "abcx"},
      {"two halves", "abcde", {"ac", "ad", "ae", "bc", "bd", "be"}, {}, "abcde", "ab"},
      {"links of non-members do not count", "ab", {"ax", "xy"}, {}, "ab", ""},
      {"a link to itself", "ab", {"aa"}, {}, "a", ""},
      {"the only one that holds the state stays", "ab", {"ab"}, {}, "a", "b"},
      {"whatever its rank", "ab", {"ab"}, {}, "b", "a"},
      {"whatever number of links it has", "abcd", {"ab", "ac", "ad"}, {"ax"}, "a", "bcd"},
      {"one of two that hold it is evicted", "abcd", {"ab", "ac"}, {}, "ad", "a"},
      {"of two that do, with a broken link between them",
       "abc",
       {"ab", "ac", "bc"},
       {},
       "ab",
       "bc"},
      {"no member is known to hold it", "abc", {"ab", "ac"}, {}, "", "a"},
  };
  for (const auto& test : kCases) {
    const auto links_of = [](const Links& texts) {
      std::set<BrokenLink> links;
      for (const char* link : texts) links.insert(LinkOf(Id(link[1]), Id(link[0])));
      return links;
    };
    std::set<BrokenLink> lately = links_of(test.broken);
    lately.merge(links_of(test.earlier));
    std::set<LearnerId> holders;
    for (const char holder : std::string(test.holders)) holders.insert(Id(holder));
    std::string evicted;
    for (const LearnerId& id :
         EvictionSet(Members(test.members), links_of(test.broken), lately, holders)) {
      evicted += id.name;
    }
    EXPECT_EQ(evicted, test.want) << test.name;
  }
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
      {{5, 10, 605}, false},  // it was intact for a long time
      {{5, 1000, 1400, 1599}, true},
  };
  for (const auto& test : kCases) {
    std::vector<TimePoint> breaks;
    for (const int at : test.seconds_of_breaks) breaks.push_back(TimePoint{} + seconds(at));
    EXPECT_EQ(KeepsBreaking(breaks), test.want) << testing::PrintToString(test.seconds_of_breaks);
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
