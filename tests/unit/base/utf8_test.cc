#include "base/utf8.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Utf8, IsCutBetweenCharacters) {
  const struct {
    const char* name;
    std::string text;
    std::size_t max_bytes;
    std::string want;
  } kCases[] = {
      {"nothing", "", 4, ""},
      {"room for all", "caf\u00e9", 5, "caf\u00e9"},
      {"a letter too many", "cafe", 3, "caf"},
      {"no room at all", "cafe", 0, ""},
      {"two bytes, room for one", "caf\u00e9", 4, "caf"},
      {"three bytes, room for two", "\u20ac\u20ac", 5, "\u20ac"},
      {"four bytes, room for three", "\U0001F600\U0001F600", 7, "\U0001F600"},
      {"the last characters of each length", "\x7F\u07FF\uFFFF\U0010FFFF", 10,
       "\x7F\u07FF\uFFFF\U0010FFFF"},
      {"half a character", "a\xC3", 9, "a\uFFFD"},
      {"half a character, then another", "\xE2\x82z", 9, "\uFFFD\uFFFDz"},
      {"a byte of another encoding", "caf\xE9 noir", 20, "caf\uFFFD noir"},
      {"the second half only", "\xA9", 9, "\uFFFD"},
      {"overlong", "\xC0\xAF", 9, "\uFFFD\uFFFD"},
      {"overlong, of three", "\xE0\x80\xAF", 9, "\uFFFD\uFFFD\uFFFD"},
      {"a surrogate", "\xED\xA0\x80", 9, "\uFFFD\uFFFD\uFFFD"},
      {"beyond the last character", "\xF4\x90\x80\x80", 12, "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"what replaces it must fit too", "ab\xFF", 4, "ab"},
  };
  for (const auto& c : kCases) {
    const std::string cut = CutAtCharacter(c.text, c.max_bytes);
    EXPECT_EQ(cut, c.want) << c.name;
    EXPECT_LE(cut.size(), c.max_bytes) << c.name;
    EXPECT_EQ(CutAtCharacter(cut, c.max_bytes), cut) << c.name;
  }
}

}  // namespace
}  // namespace pliant
