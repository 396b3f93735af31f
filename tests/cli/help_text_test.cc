#include "cli/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace paceline::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Program {
  Program() : root("tool", "What it is for.") {
    Command& command =
        root.add_command("count", "Counts things that people name in a long sentence.");
    command.example("tool count apples --most 3");
    command.add_option("thing", text, "What is counted").required().value("THING");
    command.add_option("--most", text, "At most so many").value("N (8)").in_group("Limits");
    command
        .add_option("--a-name-that-is-longer-than-its-column", text,
                    "An explanation that does not fit into one line of sixty columns by far")
        .value("VALUE")
        .in_group("Limits");
    command.add_option("--rare", text, "Seldom used").expert().in_group("Limits");
    command.add_flag("--loud", flag, "Says more");
  }
  std::string text;
  bool flag = false;
  Command root;
};

TEST(HelpText, HasGroupsInTheirOrderAndLeavesOutWhatIsSeldomUsed) {
  const Program program;
  EXPECT_EQ(help_text("tool count", program.root.commands().front(), 60, false),
            "Counts things that people name in a long sentence.\n"
            "\n"
            "Usage: tool count THING [OPTIONS]\n"
            "Example: tool count apples --most 3\n"
            "\n"
            "Arguments:\n"
            "  THING                     What is counted\n"
            "\n"
            "Limits:\n"
            "  --most N (8)              At most so many\n"
            "  --a-name-that-is-longer-than-its-column VALUE\n"
            "                            An explanation that does not fit\n"
            "                            into one line of sixty columns\n"
            "                            by far\n"
            "\n"
            "Options:\n"
            "  --loud                    Says more\n"
            "\n"
            "1 more option: tool count --help-all\n");
  const std::string all = help_text("tool count", program.root.commands().front(), 60, true);
  EXPECT_THAT(all, HasSubstr("  --rare                    Seldom used\n"));
  EXPECT_THAT(all, Not(HasSubstr("--help-all")));
}

TEST(HelpText, IsNoWiderThanItMayBe) {
  const Program program;
  for (const int width : {50, 60, 80, 200}) {
    std::istringstream lines(help_text("tool count", program.root.commands().front(), width, true));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
  }
  EXPECT_THAT(help_text("tool", program.root, 80, false),
              HasSubstr("Commands:\n  count                     Counts things"));
}

}  // namespace
}  // namespace paceline::cli
