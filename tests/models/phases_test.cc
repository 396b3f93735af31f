// Training runs as documents: what they say, and what is refused, with its place.
#include "models/phases/phases.h"
#include "models/base/error.h"
#include "models/phases/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    (void)parse_training_yaml(text, "run.yaml");
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "accepted";
}

const std::string head = "training: t\n";

TEST(TrainingRun, SaysWhatItsDocumentSays) {
  const TrainingRun run = parse_training_yaml(
      "training: two\n"
      "dataset: imagenet\n"
      "phases:\n"
      "  - {name: short, iterations: 7038, batch: 64, sequence: 128, accumulate: 2}\n"
      "  - {epochs: 1.5, precision: fp32, throughput: 253.1 samples/s}\n"
      "start_up: {value: 90 s, low: 1 min, high: 1 h}\n"
      "evaluation: {samples: 50000, every: 4 epochs, batch: 32}\n"
      "checkpoint: {time: 20 s, every: 500 iterations}\n",
      "run.yaml");
  EXPECT_EQ(run.name, "two");
  EXPECT_EQ(run.dataset->samples, 1281167);
  ASSERT_EQ(run.phases.size(), 2U);
  EXPECT_EQ(run.phases[0].name, "short");
  EXPECT_EQ(run.phases[0].length, (Length{7038, Measure::iterations}));
  EXPECT_EQ(run.phases[0].batch, 64);
  EXPECT_EQ(run.phases[0].sequence, 128);
  EXPECT_EQ(run.phases[0].accumulate, 2);
  EXPECT_FALSE(run.phases[0].precision);
  EXPECT_EQ(run.phases[1].name, "phase 2");
  EXPECT_EQ(run.phases[1].length, (Length{1.5, Measure::epochs}));
  EXPECT_EQ(run.phases[1].precision, Precision::fp32);
  EXPECT_EQ(run.phases[1].throughput, PerSecond{253.1});
  EXPECT_EQ(run.phases[1].place.line, 5);
  EXPECT_EQ(run.start_up->low, Seconds{60});
  EXPECT_EQ(run.start_up->high, Seconds{3600});
  EXPECT_EQ(run.evaluation->samples, 50000);
  EXPECT_EQ(run.evaluation->every, (Length{4, Measure::epochs}));
  EXPECT_EQ(run.evaluation->batch, 32);
  EXPECT_EQ(run.checkpoint->time.value, Seconds{20});
  EXPECT_EQ(run.checkpoint->every, (Length{500, Measure::iterations}));
}

TEST(TrainingRun, TakesTheDataSetThatIsGivenInPlaceOfItsOwn) {
  const std::string text = head + "phases: [{epochs: 2}]\n";
  EXPECT_EQ(parse_training_yaml(text, "f", Dataset{"", 100}).dataset->samples, 100);
  EXPECT_EQ(parse_training_yaml("dataset: 7\n" + text, "f", Dataset{"", 100}).dataset->samples,
            100);
}

TEST(TrainingRun, IsRefusedByFileLineAndRemedy) {
  EXPECT_THAT(refusal(""), HasSubstr("run.yaml"));
  EXPECT_THAT(refusal("phases: [{epochs: 1}]\n"), HasSubstr("training"));
  EXPECT_THAT(refusal(head), HasSubstr("phases"));
  EXPECT_THAT(refusal(head + "phases: []\n"), AllOf(HasSubstr("run.yaml:2"), HasSubstr("list")));
  EXPECT_THAT(refusal(head + "phases: {epochs: 1}\n"), HasSubstr("run.yaml:2"));
  EXPECT_THAT(refusal(head + "phases: [5]\n"), HasSubstr("run.yaml:2"));
  EXPECT_THAT(refusal(head + "phases:\n  - {batch: 1}\n"),
              AllOf(HasSubstr("run.yaml:3"), HasSubstr("epochs, samples or iterations")));
  EXPECT_THAT(refusal(head + "phases:\n  - {samples: 1, iterations: 2}\n"),
              AllOf(HasSubstr("run.yaml:3"), HasSubstr("leave one of the two out")));
  EXPECT_THAT(refusal(head + "phases:\n  - {samples: 1, bach: 2}\n"),
              AllOf(HasSubstr("run.yaml:3"), HasSubstr("bach"), HasSubstr("batch")));
  EXPECT_THAT(refusal(head + "phases: [{samples: 1}]\nwarmup: 3\n"), HasSubstr("warmup"));
  EXPECT_THAT(refusal(head + "phases: [{samples: 1}]\nphases: [{samples: 1}]\n"),
              HasSubstr("run.yaml:3"));
}

TEST(TrainingRun, RefusesLengthsThatAreNone) {
  for (const char* bad : {"0", "-1", "nan", "inf", "1e300", "1e-300", "many", "''", "[1]", "~"})
    EXPECT_THAT(refusal(head + "phases:\n  - {samples: " + bad + "}\n"), HasSubstr("run.yaml:3"))
        << bad;
  for (const char* bad : {"0", "-1", "1.5", "99999999999", "x", "''"}) {
    for (const char* key : {"batch", "sequence", "accumulate"})
      EXPECT_THAT(refusal(head + "phases:\n  - {samples: 1, " + key + ": " + bad + "}\n"),
                  HasSubstr("run.yaml:3"))
          << key << ": " << bad;
  }
}

TEST(TrainingRun, RefusesEpochsWithoutADataSet) {
  const char* remedy = "dataset: imagenet";
  EXPECT_THAT(refusal(head + "phases:\n  - {epochs: 90}\n"),
              AllOf(HasSubstr("run.yaml:3"), HasSubstr(remedy)));
  const std::string phases = head + "phases: [{samples: 9}]\n";
  EXPECT_THAT(refusal(phases + "evaluation: {samples: 9}\n"),
              AllOf(HasSubstr("run.yaml:3"), HasSubstr(remedy)));
  EXPECT_THAT(refusal(phases + "checkpoint:\n  time: 1 s\n  every: 1 epoch\n"),
              AllOf(HasSubstr("run.yaml:5"), HasSubstr(remedy)));
  EXPECT_EQ(refusal(phases + "evaluation: {samples: 9, every: 1 iteration}\n"), "accepted");
}

TEST(TrainingRun, RefusesTimesWithoutUnitsAndOutOfRange) {
  const std::string phases = head + "phases: [{samples: 9}]\n";
  for (const char* bad : {"90", "-1 s", "90 furlongs", "31 days", "nan s", "[1 s]"})
    EXPECT_THAT(refusal(phases + "start_up: " + bad + "\n"), HasSubstr("run.yaml:3")) << bad;
  EXPECT_THAT(refusal(phases + "start_up: {value: 5 s, low: 6 s}\n"), HasSubstr("run.yaml:3"));
  EXPECT_THAT(refusal(phases + "checkpoint: {every: 5 iterations}\n"), HasSubstr("time"));
  EXPECT_THAT(refusal(phases + "checkpoint: {time: 5 s, every: 5}\n"), HasSubstr("no unit"));
  EXPECT_THAT(refusal(phases + "evaluation: {samples: 1.5, every: 5 iterations}\n"),
              HasSubstr("run.yaml:3"));
}

TEST(Length, IsReadWithAndWithoutBlanksAndWrittenBack) {
  EXPECT_EQ(parse_length("1epoch"), (Length{1, Measure::epochs}));
  EXPECT_EQ(parse_length("4 epochs"), (Length{4, Measure::epochs}));
  EXPECT_EQ(parse_length("1e6 samples"), (Length{1e6, Measure::samples}));
  EXPECT_EQ(to_text(Length{1, Measure::iterations}), "1 iteration");
  EXPECT_EQ(to_text(Length{2.5, Measure::epochs}), "2.5 epochs");
  for (const char* bad : {"", "4", "epochs", "4 steps", "4 epochss", "-4 epochs", "4 4 epochs"})
    EXPECT_THROW((void)parse_length(bad), InputError) << bad;
}

TEST(Dataset, IsANameOrANumber) {
  EXPECT_EQ(parse_dataset("imagenet").samples, 1281167);
  EXPECT_EQ(parse_dataset("2400000").samples, 2400000);
  for (const char* bad : {"", "imagnet", "0", "-3", "3 samples", "nan"})
    EXPECT_THROW((void)parse_dataset(bad), InputError) << bad;
}

}  // namespace
}  // namespace paceline::models
