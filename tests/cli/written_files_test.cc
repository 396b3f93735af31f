// Which files a command takes for its own by their first bytes.
#include "cli/job/written_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::job {
namespace {

const std::vector<std::string> of_others = {
    "precious\n",
    "{\"name\": \"package\"}",
    "{\"schema\": \"other.plan/1\"}",
    "[{\"schema\": \"paceline.plan/1\"}]",
    "{\"traceEvents\": [], \"displayTimeUnit\": \"ms\"}",
    "<!DOCTYPE html>\n<html><meta name=\"generator\" content=\"Hugo\">",
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100mm\" height=\"100mm\">\n",
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n",
    "# My notes\n",
    "network: alexnet\n",
    std::string("\x7f"
                "ELF\0\0",
                6),
};

TEST(WrittenFiles, FilesOfOthersAreNotOurs) {
  for (const std::string& text : of_others) {
    for (int kind = static_cast<int>(FileKind::document);
         kind <= static_cast<int>(FileKind::description); ++kind)
      EXPECT_FALSE(is_ours(static_cast<FileKind>(kind), text)) << kind << " " << text;
  }
}

TEST(WrittenFiles, AFileOfOneKindIsOfNoOther) {
  struct Written {
    FileKind kind;
    std::string text;
  };
  const std::vector<Written> files = {
      {FileKind::document, "{\n  \"schema\": \"paceline.prediction/1\",\n"},
      {FileKind::plan, "{\n  \"schema\": \"paceline.plan/1\",\n"},
      {FileKind::profile, "{\n  \"schema\": \"paceline.profile/1\",\n"},
      {FileKind::layer_plans, "{\n  \"schema\": \"paceline.cudnn-plans/1\",\n"},
      {FileKind::timeline,
       "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"period_us\":1,\"provenance\":\"predicted\""},
      {FileKind::metrics, "{\"event\":\"start\",\"model\":\"alexnet\""},
      {FileKind::rows, "{\"cell\":0,\"model\":\"alexnet\"}\n"},
      {FileKind::markdown, "| strategy | wire |\n|---|---|\n"},
      {FileKind::report, "<!DOCTYPE html>\n<meta name=\"generator\" content=\"paceline\">\n"},
      {FileKind::manual_page, ".\\\" Written by `paceline manual` from the options\n"},
  };
  for (const Written& written : files) {
    for (const Written& other : files)
      EXPECT_EQ(is_ours(other.kind, written.text), other.kind == written.kind) << written.text;
  }
}

TEST(WrittenFiles, AnEmptyFileIsAnybodys) {
  EXPECT_TRUE(is_ours(FileKind::report, ""));
  EXPECT_TRUE(is_ours(FileKind::description, ""));
  EXPECT_TRUE(has_titles_of("", "a,b\n"));
}

TEST(WrittenFiles, MetricsThatWereCutAreOurs) {
  EXPECT_TRUE(is_ours(FileKind::metrics, "{\"ev"));
  EXPECT_TRUE(is_ours(FileKind::metrics, "{\"event\": \"iter"));
  EXPECT_FALSE(is_ours(FileKind::metrics, "{\"even\":1}"));
  EXPECT_TRUE(is_ours(FileKind::rows, "ce"));
  EXPECT_TRUE(is_ours(FileKind::rows, "cell,model"));
}

TEST(WrittenFiles, TablesAreKnownByTheirTitles) {
  EXPECT_TRUE(is_ours(FileKind::csv, "model,cluster,ranks\nalexnet,lab,2\n"));
  EXPECT_FALSE(is_ours(FileKind::csv, "word\n"));
  EXPECT_TRUE(has_titles_of("model,ranks,name,a\n", "model,ranks,name,b,c\n"));
  EXPECT_FALSE(has_titles_of("name,age\n", "model,ranks\n"));
  EXPECT_FALSE(has_titles_of("name,age\n", "model,cluster,ranks,name,wire_type\n"));
  EXPECT_TRUE(has_titles_of("| model | ranks |\n|---|---|\n", "| model | ranks | plan |\n"));
  EXPECT_FALSE(has_titles_of("| model |\n|---|\n", "model,ranks\n"));
}

}  // namespace
}  // namespace paceline::job
