#include "cli/table.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(Table, AlignsColumnsAndCutsBlanksAtTheEnd) {
  Table table({{"name", Align::left}, {"time"}, {"note", Align::left}});
  table.add({"ring", "3 us", "slow"});
  table.add({"hybrid", "12 µs", ""});
  EXPECT_EQ(table.text(),
            "name     time  note\n"
            "ring     3 us  slow\n"
            "hybrid  12 µs\n");
}

TEST(Table, LeavesOutTheLeastImportantColumnsFirst) {
  Table table({{.title = "name", .align = Align::left},
               {.title = "time", .least_important = 1},
               {.title = "buckets", .least_important = 3},
               {.title = "note", .align = Align::left, .least_important = 2}});
  table.add({"ring", "3 us", "161", "slow"});
  const int whole = 4 + 2 + 4 + 2 + 7 + 2 + 4;
  EXPECT_TRUE(table.fitted(whole).left_out.empty());
  EXPECT_EQ(table.fitted(whole).text, table.text());
  const Table::Fitted fitted = table.fitted(whole - 1);
  EXPECT_EQ(fitted.left_out, std::vector<std::string>{"buckets"});
  EXPECT_EQ(fitted.text,
            "name  time  note\n"
            "ring  3 us  slow\n");
  // Columns of importance 0 stay, however narrow the terminal.
  EXPECT_EQ(table.fitted(1).left_out, (std::vector<std::string>{"time", "buckets", "note"}));
  EXPECT_EQ(table.fitted(1).text, "name\nring\n");
}

TEST(Table, LeavesOutAColumnWithoutATitleWithTheOneBeforeIt) {
  Table table({{"bucket"},
               {.title = "ready, ms", .least_important = 1},
               {""},
               {""},
               {"exposed, ms"},
               {""}});
  table.add({"0", "12.5", "13.5", "+1.0", "3", "4"});
  const Table::Fitted fitted = table.fitted(40);
  EXPECT_EQ(fitted.left_out, std::vector<std::string>{"ready, ms"});
  EXPECT_EQ(fitted.text,
            "bucket  exposed, ms\n"
            "     0            3  4\n");
  EXPECT_TRUE(table.fitted(100).left_out.empty());
}

TEST(Table, WrapsAColumnOfWordsBeforeItLeavesOneOut) {
  Table table({{.title = "what", .align = Align::left, .wraps = true},
               {.title = "error", .least_important = 1}});
  table.add({"one GPU at batch 64 and then some more words", "+3 %"});
  table.add({"short", "+1 %"});
  const Table::Fitted fitted = table.fitted(35);
  EXPECT_TRUE(fitted.left_out.empty());
  EXPECT_EQ(fitted.text,
            "what                          error\n"
            "one GPU at batch 64 and then   +3 %\n"
            "some more words\n"
            "short                          +1 %\n");
  EXPECT_EQ(table.fitted(100).text, table.text());
}

TEST(Table, KeepsRowsAndColumnsInAnotherOrder) {
  Table table({{"a"}, {"b"}, {"c"}});
  table.add({"1", "2", "3"});
  table.add({"4", "5", "6"});
  table.keep_rows(std::vector<std::size_t>{1});
  table.keep_columns(std::vector<std::size_t>{2, 0});
  EXPECT_EQ(table.text(), "c  a\n6  4\n");
}

TEST(TopOf, HasTheBestFirstAndThenTheLeast) {
  const std::vector<Seconds> times = {Seconds{3}, Seconds{1}, Seconds{2}, Seconds{2}};
  using Positions = std::vector<std::size_t>;
  EXPECT_EQ(top_of(3, times, 1), (Positions{1, 2, 3}));
  EXPECT_EQ(top_of(2, times, 2), (Positions{2, 1})) << "the best need not be the least";
  EXPECT_EQ(top_of(0, times, 1), (Positions{0, 1, 2, 3}));
  EXPECT_EQ(top_of(4, times, 1), (Positions{0, 1, 2, 3}));
}

TEST(Table, LeavesOutTheMiddleOfManyRows) {
  const auto of_rows = [](int rows) {
    Table table({{"bucket"}, {"size"}});
    for (int i = 0; i < rows; ++i) table.add({std::to_string(i), std::to_string(10 * i)});
    return table;
  };
  Table many = of_rows(7);
  EXPECT_EQ(many.leave_out_middle(2, 1), 4);
  EXPECT_EQ(many.text(),
            "bucket  size\n"
            "     0     0\n"
            "     1    10\n"
            "   ...\n"
            "     6    60\n");
  Table few = of_rows(4);
  EXPECT_EQ(few.leave_out_middle(2, 1), 0) << "the row of dots would be as long";
  EXPECT_EQ(few.text(), of_rows(4).text());
}

TEST(Wrapped, BreaksLongLinesAtBlanks) {
  EXPECT_EQ(wrapped("short\n\n  as it is\n", 20), "short\n\n  as it is\n");
  EXPECT_EQ(wrapped("  one two three four\nfive", 12), "  one two\n    three\n    four\nfive");
  EXPECT_EQ(wrapped("averyveryverylongword and", 10), "averyveryverylongword\n  and");
}

TEST(Table, BlocksRepeatTheFirstColumn) {
  Table table({{"ranks"}, {"ring"}, {"hybrid"}, {"torus"}});
  table.add({"8", "1", "2", "3"});
  EXPECT_EQ(table.blocks(100), table.text());
  EXPECT_EQ(table.blocks(5 + 2 + 4 + 2 + 6),
            "ranks  ring  hybrid\n"
            "    8     1       2\n"
            "\n"
            "ranks  torus\n"
            "    8      3\n");
  EXPECT_EQ(table.blocks(1).substr(0, 23), "ranks  ring\n    8     1");
}

}  // namespace
}  // namespace paceline::cli
