#include "base/ascii.hpp"

#include <gtest/gtest.h>

namespace fallow {
namespace {

constexpr const char* kLetter = "\xc3\xbc";  // two bytes

TEST(Ascii, CommentsLoseWhatIsBeyondIt) {
  const std::string plain = with_ascii_comments("# Universit\xc3\xa9\nname = \"a\"  # \xc3\xbc\nb = 1\n");
  EXPECT_EQ(plain, "# Universit??\nname = \"a\"  # ??\nb = 1\n");
  EXPECT_EQ(line_beyond_ascii(plain), 0U);
}

TEST(Ascii, WhatIsNoCommentStays) {
  for (const char* before : {"a = \"#", "a = '#", "a = \"\"\"x\n\"#", "a = '''x\n'#", "a = \"\\\"#", "a = \"\"\"\\\"\"\"#", "a = \"\"\"\"#", "a"}) {
    const std::string text = std::string(before) + kLetter;
    EXPECT_EQ(with_ascii_comments(text), text);
  }
}

TEST(Ascii, CommentsAfterTextsAreFound) {
  for (const char* before : {"a = \"\" #", "a = '' #", "a = \"\"\"x\n\"\"\" #", "a = '''x\n''' #", "a = '\\' #", "a = \"\\\\\" #", "a = \"never ended\n#"}) {
    EXPECT_EQ(with_ascii_comments(std::string(before) + kLetter), std::string(before) + "??");
  }
}

TEST(Ascii, TheMarkBeforeTheTextIsLeftOut) {
  EXPECT_EQ(with_ascii_comments("\xef\xbb\xbf" "a = 1\n"), "a = 1\n");
  EXPECT_EQ(with_ascii_comments("\xef\xbb\xbf# \xc3\xbc\n"), "# ??\n");
  EXPECT_EQ(line_beyond_ascii(with_ascii_comments("a\n\xef\xbb\xbf")), 2U) << "elsewhere it is none";
}

TEST(Ascii, NamesTheLine) {
  EXPECT_EQ(line_beyond_ascii("a\nb\n\xc3\xbc"), 3U);
  EXPECT_EQ(line_beyond_ascii("a\nb\n"), 0U);
}

}  // namespace
}  // namespace fallow
