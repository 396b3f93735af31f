// How words become values, and what is said of those that do not fit.
#include "cli/command_line.h"

#include <gmock/gmock.h>

#include "models/base/error.h"

namespace paceline::cli {
namespace {

using ::testing::HasSubstr;

// A program with two commands, one of them with a command below it.
struct Program {
  std::string ranks = "8";
  std::string model;
  std::string batch;
  std::string file;
  bool json = false;
  std::string ran;
  Command root{"program", "What it is for."};

  Program() {
    Command& predict = root.add_command("predict", "Says how long.");
    predict.add_option("--ranks", ranks, "Number of ranks").value("N (8)");
    const Option& network = predict.add_option("--model", model, "Network").value("NAME");
    predict.add_option("--batch", batch, "Its batch").needs(network);
    predict.add_flag("--json", json, "As JSON");
    predict.on_run([this] { ran = "predict"; });
    Command& show = root.add_command("show", "Shows things.");
    Command& one = show.add_command("file", "A file.");
    one.add_option("path", file, "Its path").required().value("FILE");
    one.on_run([this] { ran = "show file"; });
    Command& measure = root.add_command("measure", "Measures.");
    measure.on_run([this] { ran = "measure"; });
    measure.add_command("import", "Imports.").on_run([this] { ran = "measure import"; });
  }

  ParsedLine parse(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    return parse_command_line(root, "program 1.2", static_cast<int>(words.size()), words.data());
  }
  std::string run(const std::vector<const char*>& words) {
    parse(words).run();
    return ran;
  }
  std::string refusal(const std::vector<const char*>& words) {
    try {
      (void)parse(words);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST(CommandLine, WritesValuesWhereTheyBelong) {
  Program program;
  EXPECT_EQ(program.run({"predict", "--ranks", "16", "--model=vgg16", "--json"}), "predict");
  EXPECT_EQ(program.ranks, "16");
  EXPECT_EQ(program.model, "vgg16");
  EXPECT_TRUE(program.json);
}

TEST(CommandLine, KeepsWhatIsNotGiven) {
  Program program;
  EXPECT_EQ(program.run({"predict"}), "predict");
  EXPECT_EQ(program.ranks, "8");
  EXPECT_FALSE(program.json);
}

TEST(CommandLine, RunsTheInnermostCommand) {
  EXPECT_EQ(Program().run({"show", "file", "a.yaml"}), "show file");
  EXPECT_EQ(Program().run({"measure"}), "measure");
  EXPECT_EQ(Program().run({"measure", "import"}), "measure import");
}

TEST(CommandLine, RefusesAnEmptyValue) {
  EXPECT_EQ(Program().refusal({"predict", "--ranks", ""}),
            "--ranks is empty; give it a value, or leave it out");
  EXPECT_EQ(Program().refusal({"predict", "--ranks="}),
            "--ranks is empty; give it a value, or leave it out");
  EXPECT_EQ(Program().refusal({"predict", "--ranks=", "--json"}),
            "--ranks is empty; give it a value, or leave it out");
  EXPECT_EQ(Program().refusal({"show", "file", ""}),
            "an empty path; give it a value, or leave it out");
}

TEST(CommandLine, SaysWhatMayHaveBeenMeant) {
  EXPECT_EQ(Program().refusal({"predic"}), "unknown command 'predic'; did you mean 'predict'?");
  EXPECT_EQ(Program().refusal({"show", "fil"}), "unknown command 'fil'; did you mean 'file'?");
  EXPECT_EQ(Program().refusal({"predict", "--rank=4"}),
            "unknown option '--rank'; did you mean '--ranks'?");
  EXPECT_EQ(Program().refusal({"predict", "--zzz"}), "unknown option '--zzz'; see --help");
  EXPECT_THAT(Program().refusal({"predict", "zzz"}), HasSubstr("zzz"));
}

TEST(CommandLine, SaysWhatIsMissing) {
  EXPECT_EQ(Program().refusal({}), "a command is missing; give one of: predict, show, measure");
  EXPECT_EQ(Program().refusal({"show"}), "a command is missing; give one of: file");
  EXPECT_THAT(Program().refusal({"show", "file"}), HasSubstr("path is required"));
  EXPECT_THAT(Program().refusal({"predict", "--ranks"}), HasSubstr("--ranks"));
  EXPECT_THAT(Program().refusal({"predict", "--batch", "4"}), HasSubstr("--model"));
}

TEST(CommandLine, HelpAndVersionAreTexts) {
  Program program;
  const ParsedLine help = program.parse({"predict", "--help"});
  ASSERT_NE(help.help, nullptr);
  EXPECT_EQ(help.help->name(), "predict");
  EXPECT_THAT(help.path, testing::EndsWith(" predict"));
  EXPECT_FALSE(help.all_help);
  EXPECT_TRUE(program.parse({"show", "file", "--help-all"}).all_help);
  EXPECT_EQ(Program().parse({"--version"}).text, "program 1.2\n");
  EXPECT_EQ(program.parse({"--help"}).help, &program.root);
}

}  // namespace
}  // namespace paceline::cli
