// Timelines in the shape of Horovod's, whose all-reduces take what their generator planted.
#include "calibration/import/horovod.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Imported parsed(const std::string& file) {
  return parse_horovod(golden_import("horovod/" + file), "timeline.json");
}

// 40 us + 0.9 ns a byte + the number of the iteration, in whole microseconds.
void expect_buckets(const Imported& imported, double element, double slope_us) {
  ASSERT_EQ(imported.curves.size(), 1u);
  const std::vector<Sample>& samples = imported.curves[0].samples;
  // Two tensors are fused, three are not.
  ASSERT_EQ(samples.size(), 12u);
  const double sizes[] = {512 * 10 + 10, 3 * 3 * 128 * 256, 3 * 3 * 64 * 128, 7 * 7 * 3 * 64};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double bytes = sizes[i % 4] * element;
    EXPECT_EQ(samples[i].bytes, Bytes{bytes}) << i;
    const double expected = 40 + bytes * slope_us + static_cast<double>(i / 4);
    EXPECT_NEAR(samples[i].time.value(), expected * 1e-6, 0.51e-6) << i;
  }
}

TEST(Horovod, ATimelineThatIsNotClosed) {
  const Imported imported = parsed("0.12-unterminated.json");
  EXPECT_EQ(imported.tool, "Horovod timeline");
  EXPECT_THAT(imported.remarks,
              ElementsAre("the timeline is not closed; an event that is cut is left out"));
  expect_buckets(imported, 4, 0.9e-3);
  EXPECT_EQ(imported.curves[0].library, "mpi");
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp32);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(4));
}

TEST(Horovod, AClosedTimeline) {
  const Imported imported = parsed("0.28-closed.json");
  EXPECT_THAT(imported.remarks, ::testing::IsEmpty());
  expect_buckets(imported, 2, 1.8e-3);
  EXPECT_EQ(imported.curves[0].library, "nccl");
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp16);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(2));
}

TEST(Horovod, TensorsAsThreads) {
  expect_buckets(parsed("threads.json"), 4, 0.9e-3);
}

TEST(Horovod, TensorsAreReadyOneAfterTheOther) {
  const Imported imported = parsed("0.28-closed.json");
  EXPECT_EQ(imported.iterations, 3u);
  ASSERT_EQ(imported.tensors.size(), 5u);
  EXPECT_EQ(imported.tensors[0].tensor, "DistributedSGD_Allreduce/grads_dense_kernel");
  EXPECT_EQ(imported.tensors[0].bytes, Bytes{10240});
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(imported.tensors[i].ready.value(), static_cast<double>(i) * 2e-3, 1e-9) << i;
    // The second of two ranks, 10 us and 0, 1 or 2 more.
    EXPECT_NEAR(imported.tensors[i].apart.value(), 11e-6, 1e-9) << i;
  }
  EXPECT_EQ(imported.tensors[0].all_reduce, imported.tensors[1].all_reduce);
}

TEST(Horovod, WithoutShapesThereIsNoCurve) {
  std::string text = golden_import("horovod/0.28-closed.json");
  for (std::size_t at; (at = text.find("\"shape\"")) != std::string::npos;)
    text.replace(at, 7, "\"form\"");
  const Imported imported = parse_horovod(text, "timeline.json");
  EXPECT_TRUE(imported.curves.empty());
  EXPECT_EQ(imported.tensors.size(), 5u);
  EXPECT_THAT(
      imported.remarks,
      Contains("12 all-reduces have no dtype and shape, and make no curve of time by size"));
}

// Reduce-scatter, all-reduce between nodes, all-gather: none of them is an all-reduce of all ranks.
TEST(Horovod, PhasesOfAHierarchicalAllReduceMakeNoCurve) {
  std::string text = R"([{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "w"}})";
  int now = 0;
  const auto add = [&](const char* phase, const char* name, const char* arguments) {
    text += fmt::format(R"(,{{"ph": "{}", "name": "{}", "ts": {}, "pid": 1, "args": {{{}}}}})",
                        phase, name, now += 10, arguments);
  };
  add("B", "ALLREDUCE", "");
  for (const char* name : {"NCCL_REDUCESCATTER", "MPI_ALLREDUCE", "NCCL_ALLGATHER"}) {
    add("B", name, "");
    add("E", "", "");
  }
  add("E", "", R"("dtype": "float32", "shape": "[1000]")");
  const Imported imported = parse_horovod(text + "]", "timeline.json");
  EXPECT_EQ(imported.iterations, 1u);
  EXPECT_TRUE(imported.curves.empty());
  EXPECT_THAT(imported.remarks, Contains("1 all-reduces of several phases make no curve"));
}

TEST(Horovod, ErrorsAreOneLine) {
  const auto error = [](const std::string& text) {
    return test::error_of([&] { return parse_horovod(text, "timeline.json"); });
  };
  EXPECT_EQ(
      error("[]"),
      "timeline.json: no tensor is all-reduced in this timeline; give a timeline of a job that "
      "trains with Horovod");
  EXPECT_THAT(error("[{\"ph\": \"B\"} x ]"), HasSubstr("timeline.json:1:14: this is not JSON"));
  EXPECT_THAT(error(""), HasSubstr("this is not JSON"));
  EXPECT_THAT(error("[[]]"), HasSubstr("an event that is no object"));
}

RC_GTEST_PROP(HorovodProperty, SurvivesDamage, ()) {
  static const std::string whole = golden_import("horovod/0.28-closed.json");
  std::string text = whole;
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  const auto length = *rc::gen::inRange<std::size_t>(0, 2000);
  const std::string put = *rc::gen::element<std::string>("", "{", "]", "\"", "1e999", "-1", "null");
  text.replace(at, length, put);
  const std::string error = test::error_of([&] { return parse_horovod(text, "timeline.json"); });
  RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace paceline::calibration
