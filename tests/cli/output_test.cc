// What reaches a terminal of text that a user's file may hold.
#include "cli/output.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(Printable, LeavesPlainTextAlone) {
  EXPECT_EQ(printable("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(printable("3 µs ± 1 %, █"), "3 µs ± 1 %, █");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\u001b[31mred\\u001b[0m");
  EXPECT_EQ(printable("a\rb\x07\x7f"), "a\\u000db\\u0007\\u007f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\u0000b");
  // U+009B is a control sequence introducer of its own.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
}

TEST(Printable, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(printable("a\xff"
                      "b\xe2\x82"),
            "a?b??");
  EXPECT_EQ(printable("\xc0\xaf"), "??");
  EXPECT_EQ(printable("\xed\xa0\x80 \xe0\x80\xaf \xf0\x80\x80\xaf \xf4\x90\x80\x80"),
            "??? ??? ???? ????");
}

// An override of the direction of writing shows a text as another.
TEST(Printable, ShowsWhatTurnsTheDirectionOfWriting) {
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c"),
            "a\\u202eb\\u2066c");
}

}  // namespace
}  // namespace paceline::cli
