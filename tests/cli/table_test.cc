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

}  // namespace
}  // namespace paceline::cli
