#include "models/base/document.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/precision.h"

namespace paceline {
namespace {

struct Part {
  std::string name;
  Seconds time;
};

struct Whole {
  int ranks = 8;
  bool is_exact = true;
  double share = -0.5;
  std::vector<Part> parts = {{"forward", Seconds{2}}};
  std::optional<Part> best = {};
  std::optional<int> streams = {};
  models::Precision precision = models::Precision::mixed;
  std::map<int, double> slow_ranks = {{3, 2.0}};
  std::vector<std::pair<std::string, std::string>> sources = {{"b", "second"}, {"a", "first"}};
  Figure<Seconds> iteration = Figure<Seconds>::exact(Seconds{4}, Provenance::predicted, "test");
};

const Document<Part>& part_document() {
  static const auto document =
      Document<Part>().add("name", &Part::name).add("time_s", &Part::time, positive());
  return document;
}

std::string text(const Json& json) {
  return json.in_one_line();
}

std::string written(const Document<Whole>& document, const Whole& whole = {}) {
  return text(document.json(whole));
}

TEST(Document, WritesMembersInTheirOrder) {
  EXPECT_EQ(written(Document<Whole>()
                        .add("ranks", &Whole::ranks)
                        .add("is_exact", &Whole::is_exact)
                        .add("share", &Whole::share)
                        .add("precision", &Whole::precision)
                        .add("twice", [](const Whole& whole) { return 2 * whole.ranks; })
                        .add_constant("provenance", "predicted")),
            R"({"ranks":8,"is_exact":true,"share":-0.5,"precision":"mixed","twice":16,)"
            R"("provenance":"predicted"})");
}

TEST(Document, WritesDocumentsInDocuments) {
  EXPECT_EQ(written(Document<Whole>()
                        .add("parts", &Whole::parts, part_document())
                        .add("best", &Whole::best, part_document())),
            R"({"parts":[{"name":"forward","time_s":2.0}],"best":null})");
  EXPECT_EQ(written(Document<Whole>().include(&Whole::best, part_document()),
                    {.best = Part{"backward", Seconds{3}}}),
            R"({"name":"backward","time_s":3.0})");
  EXPECT_EQ(written(Document<Whole>().include(&Whole::best, part_document())), "{}");
  EXPECT_EQ(written(Document<Whole>().add_mapping(
                "by_name",
                [](const Whole& whole) {
                  std::vector<std::pair<std::string, Part>> parts;
                  for (const Part& part : whole.parts) parts.emplace_back(part.name, part);
                  return parts;
                },
                part_document())),
            R"({"by_name":{"forward":{"name":"forward","time_s":2.0}}})");
}

TEST(Document, LeavesOutWhatIsNotThere) {
  const auto document = Document<Whole>().add_if_any("streams", &Whole::streams, at_least(1));
  EXPECT_EQ(written(document), "{}");
  EXPECT_EQ(written(document, {.streams = 4}), R"({"streams":4})");
  EXPECT_EQ(written(Document<Whole>().add("streams", &Whole::streams)), R"({"streams":null})");
}

TEST(Document, WritesMapsAndListsOfPairsAsObjects) {
  EXPECT_EQ(
      written(
          Document<Whole>().add("slow_ranks", &Whole::slow_ranks).add("sources", &Whole::sources)),
      R"({"slow_ranks":{"3":2.0},"sources":{"b":"second","a":"first"}})");
}

TEST(Document, WritesTheEndsOfFigures) {
  EXPECT_EQ(written(Document<Whole>().add_interval("iteration", "s", &Whole::iteration)),
            R"({"iteration_s":4.0,"iteration_low_s":4.0,"iteration_high_s":4.0})");
  const auto maybe = [](const Whole& whole) {
    return whole.streams ? std::optional(whole.iteration) : std::nullopt;
  };
  const auto document = Document<Whole>().add_interval("cost", "usd", maybe);
  EXPECT_EQ(written(document), R"({"cost_usd":null})");
  EXPECT_EQ(written(document, {.streams = 1}),
            R"({"cost_usd":4.0,"cost_low_usd":4.0,"cost_high_usd":4.0})");
}

TEST(Document, SaysItsSchema) {
  const auto document = Document<Whole>("test/1", "A test.")
                            .add("ranks", &Whole::ranks, at_least(1))
                            .add_if_any("streams", &Whole::streams)
                            .add("precision", &Whole::precision)
                            .add("parts", &Whole::parts, part_document(), 1)
                            .add("best", &Whole::best, part_document());
  const std::string part =
      R"({"type":"object","required":["name","time_s"],"properties":{)"
      R"("name":{"type":"string","minLength":1},)"
      R"("time_s":{"type":"number","exclusiveMinimum":0}},"additionalProperties":false})";
  EXPECT_EQ(
      text(document.schema()),
      R"({"$schema":"https://json-schema.org/draft/2020-12/schema","title":"test/1",)"
      R"("description":"A test.","type":"object",)"
      R"("required":["schema","ranks","precision","parts","best"],"properties":{)"
      R"("schema":{"const":"test/1"},"ranks":{"type":"integer","minimum":1},)"
      R"("streams":{"type":"integer","minimum":0},"precision":{"enum":["fp32","mixed","fp8"]},)"
      R"("parts":{"type":"array","items":)" +
          part + R"(,"minItems":1},"best":{"anyOf":[)" + part +
          R"(,{"type":"null"}]}},"additionalProperties":false})");
}

TEST(Document, AMemberThatMayBeAbsentIsNotRequired) {
  const auto document = Document<Whole>().include(&Whole::best, part_document());
  EXPECT_NE(text(document.shape().schema).find(R"("required":[])"), std::string::npos);
}

}  // namespace
}  // namespace paceline
