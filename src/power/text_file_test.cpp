#include "power/text_file.hpp"

#include <cerrno>

#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

TEST(TextFile, ReadsWithoutTrailingWhiteSpace) {
  FakeTree tree;
  tree.write("a", "12 J 34 us \n\n");
  EXPECT_EQ(read_text(tree.root() / "a").text, "12 J 34 us");
  tree.write("a", "");
  EXPECT_TRUE(read_text(tree.root() / "a").ok());
  EXPECT_EQ(read_text(tree.root() / "a").text, "");
}

TEST(TextFile, SaysWhyItCannotRead) {
  FakeTree tree;
  tree.make_dir("dir");
  EXPECT_EQ(read_text(tree.root() / "none").error, ENOENT);
  EXPECT_EQ(read_text(tree.root() / "dir").error, EISDIR);
  tree.write("secret", "1");
  tree.forbid("secret");
  {
    const Unprivileged user;
    EXPECT_EQ(read_text(tree.root() / "secret").error, EACCES);
  }
  EXPECT_EQ(read_failure("/x/y", ENOENT), "cannot read /x/y: No such file or directory");
}

TEST(TextFile, TakesNoMoreThanOneAttribute) {
  FakeTree tree;
  tree.write("long", std::string(100000, '7'));
  EXPECT_EQ(read_text(tree.root() / "long").text.size(), 4096U);
}

TEST(ParseInteger, TakesNumbersOnly) {
  EXPECT_EQ(parse_unsigned("0"), 0U);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(parse_signed("-3"), -3);
  for (const char* bad : {"", " 1", "1 ", "1x", "-1", "+1", "0x10", "18446744073709551616", "1.5", "nan"}) {
    EXPECT_FALSE(parse_unsigned(bad)) << bad;
  }
}

TEST(ListDirectory, OrdersNumbersByValue) {
  FakeTree tree;
  for (const char* name : {"hwmon10", "hwmon2", "hwmon1", "a"}) tree.make_dir(std::string("d/") + name);
  int error = -1;
  std::vector<std::string> names;
  for (const auto& p : list_directory(tree.root() / "d", &error)) names.push_back(p.filename().string());
  EXPECT_EQ(error, 0);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "hwmon1", "hwmon2", "hwmon10"}));
  EXPECT_TRUE(list_directory(tree.root() / "none", &error).empty());
  EXPECT_EQ(error, ENOENT);
}

TEST(Numbered, FindsTheNumberBetween) {
  EXPECT_EQ(numbered("energy12_input", "energy", "_input"), 12U);
  EXPECT_FALSE(numbered("energy_input", "energy", "_input"));
  EXPECT_FALSE(numbered("energyx_input", "energy", "_input"));
  EXPECT_FALSE(numbered("power1_input", "energy", "_input"));
}

}  // namespace
}  // namespace fallow::power
