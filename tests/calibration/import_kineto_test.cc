// Traces in the shape of torch.profiler of four versions, whose layers take what the tables below
// say, and what is wrong with such files.
#include "calibration/import/kineto.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "models/network/yaml.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"
#include "tests/support/source_tree.h"

namespace paceline::calibration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Planted {
  double forward_us;
  double backward_us;
};

// The files were written with these: the median of three iterations, one microsecond apart. The
// interval of three is the distance to the median stretched by this (fit/statistics.h).
constexpr double stretch = 2.262;
const std::map<std::string, Planted> planted = {
    {"conv1", {120, 260}}, {"bn1", {40, 70}}, {"relu1", {15, 25}}, {"conv2", {180, 390}},
    {"bn2", {44, 76}},     {"sum", {12, 9}},  {"relu2", {14, 24}}, {"pool", {30, 36}},
    {"fc", {50, 85}},      {"loss", {60, 48}}};

models::Network tiny_net() {
  std::ifstream in(test::source_path("docs/examples/tiny-net.yaml"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return models::parse_network_yaml(text, "tiny-net.yaml");
}

Imported parsed(const std::string& file) {
  return parse_kineto(golden_import("kineto/" + file), "trace.json", tiny_net());
}

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { return parse_kineto(text, "trace.json", tiny_net()); });
}

void expect_planted(const Imported& imported) {
  EXPECT_EQ(imported.tool, "torch.profiler");
  EXPECT_EQ(imported.version, "schema 1");
  EXPECT_EQ(imported.iterations, 3u);
  ASSERT_EQ(imported.layers.size(), planted.size());
  for (const ImportedLayer& layer : imported.layers) {
    SCOPED_TRACE(layer.layer);
    const auto expected = planted.find(layer.layer);
    ASSERT_NE(expected, planted.end());
    EXPECT_NEAR(layer.forward.value.value(), expected->second.forward_us * 1e-6, 1e-9);
    EXPECT_NEAR(layer.forward.high.value(), (expected->second.forward_us + stretch) * 1e-6, 1e-9);
    EXPECT_NEAR(layer.forward.low.value(),
                std::max(0.0, expected->second.forward_us - stretch) * 1e-6, 1e-9);
    EXPECT_NEAR(layer.backward.value.value(), expected->second.backward_us * 1e-6, 1e-9);
    EXPECT_EQ(layer.forward.provenance, Provenance::measured);
  }
}

TEST(Kineto, OperatorsInOrder) {
  expect_planted(parsed("1.8-operators.json"));
}

TEST(Kineto, Modules) {
  expect_planted(parsed("2.0-modules.json"));
}

TEST(Kineto, NamedLayers) {
  expect_planted(parsed("2.5-named.json"));
}

TEST(Kineto, KernelsOfAGpu) {
  const Imported imported = parsed("2.5-cuda.json");
  expect_planted(imported);
  EXPECT_THAT(imported.layers[0].forward.source, HasSubstr("kernels"));
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(8));
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp32);
  ASSERT_EQ(imported.curves[0].samples.size(), 18u);
  EXPECT_EQ(imported.curves[0].samples[0].bytes, Bytes{4096});
  EXPECT_THAT(imported.remarks, Contains("NCCL's kernels include waiting for the other ranks"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = 0;
  while ((at = text.find(from, at)) != std::string::npos) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

// In traces of PyTorch 1.8, nothing stands around a backward operator but its own name, and its
// number of the forward's thread says what it is.
// Sharded training has no all-reduces. What it has instead is said, by name, number and time.
TEST(Kineto, CollectivesThatMakeNoCurveAreTold) {
  const auto remarks = [](const std::string& from, const std::string& to) {
    std::string text = golden_import("kineto/2.5-cuda.json");
    std::size_t found = 0;
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
      ++found;
    }
    EXPECT_EQ(found, 18u);
    const Imported imported = parse_kineto(text, "trace.json", tiny_net());
    EXPECT_TRUE(imported.curves.empty());
    return imported.remarks;
  };
  EXPECT_THAT(remarks("\"Collective name\": \"allreduce\"",
                      "\"Collective name\": \"_reduce_scatter_base\""),
              Contains(::testing::AllOf(
                  HasSubstr("18 NCCL kernels of _reduce_scatter_base (6 an iteration), "),
                  HasSubstr("ms in all, are left out: only all-reduces that say their size"))));
  // Before PyTorch 2.2 a kernel says what it is by its name alone.
  EXPECT_THAT(
      remarks("\"Collective name\": \"allreduce\", \"In msg nelems\"", "\"bytes\""),
      Contains(HasSubstr("18 NCCL kernels of all_reduce without elements, dtype or group size "
                         "(6 an iteration), ")));
}

TEST(Kineto, BackwardWithoutTheEngineAround) {
  const std::string text = golden_import("kineto/1.8-operators.json");
  const std::string bare = replaced(text, "autograd::engine::evaluate_function: ", "");
  ASSERT_NE(bare, text);
  expect_planted(parse_kineto(bare, "trace.json", tiny_net()));
}

// There, annotations are operators, too.
TEST(Kineto, IterationsThatAreOperators) {
  const std::string text = replaced(golden_import("kineto/1.8-operators.json"),
                                    "\"cat\": \"user_annotation\"", "\"cat\": \"Operator\"");
  ASSERT_NE(text.find("\"Operator\", \"name\": \"ProfilerStep#"), std::string::npos);
  expect_planted(parse_kineto(text, "trace.json", tiny_net()));
}

// In some versions the "External id" of a kernel is its correlation, which may be that of another
// operator.
TEST(Kineto, TheCallThatLaunchedAKernelSaysWhoseItIs) {
  std::string text = R"({"traceEvents": [)";
  const auto add = [&](const char* category, const std::string& name, int tid, int begin, int time,
                       const std::string& arguments) {
    text += fmt::format(
        R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, )"
        R"("args": {{{}}}}})",
        text.back() == '[' ? "" : ",", category, name, tid, begin, time, arguments);
  };
  add("user_annotation", "conv1", 1, 0, 10, "");
  add("cpu_op", "aten::conv2d", 1, 1, 8, R"("External id": 1)");
  add("user_annotation", "conv2", 1, 20, 10, "");
  add("cpu_op", "aten::conv2d", 1, 21, 8, R"("External id": 2)");
  add("cuda_runtime", "cudaLaunchKernel", 1, 3, 1, R"("correlation": 2)");
  add("kernel", "k", 7, 40, 100, R"("correlation": 2, "External id": 2)");
  add("cuda_runtime", "cudaLaunchKernel", 1, 23, 1, R"("correlation": 3)");
  add("kernel", "k", 7, 150, 30, R"("correlation": 3, "External id": 3)");
  const Imported imported = parse_kineto(text + "]}", "trace.json", tiny_net());
  ASSERT_EQ(imported.layers.size(), 2u);
  EXPECT_NEAR(imported.layers[0].forward.value.value(), 100e-6, 1e-12);
  EXPECT_NEAR(imported.layers[1].forward.value.value(), 30e-6, 1e-12);
}

// Projections of vectors and of sequences are told by their order, and what is inside attention is
// attention's, whether one operator does it or two products with a softmax between them.
TEST(Kineto, AttentionAndItsProjections) {
  const models::Network network = models::parse_network_yaml(
      "network: n\ninput: {tokens: 4, features: 8}\nlayers:\n"
      "  - {name: in, kind: linear, outputs: 24}\n  - {name: attend, kind: attention, heads: 2}\n"
      "  - {name: drop, kind: dropout, probability: 0.1}\n"
      "  - {name: first, kind: first_token}\n  - {name: out, kind: fully_connected, outputs: 3}\n",
      "n.yaml");
  for (const bool is_fused : {false, true}) {
    SCOPED_TRACE(is_fused ? "one operator" : "three operators");
    std::string text = R"({"traceEvents": [)";
    const auto add = [&](const std::string& name, int begin, int time, int sequence, bool back) {
      text += fmt::format(
          R"({}{{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, )"
          R"("args": {{"Sequence number": {}, "Fwd thread id": {}}}}})",
          text.back() == '[' ? "" : ",", name, back ? 2 : 1, begin, time, sequence, back ? 1 : 0);
    };
    add("aten::linear", 0, 10, 1, false);
    if (is_fused) add("aten::scaled_dot_product_attention", 20, 60, 2, false);
    add("aten::bmm", 20, 10, 2, false);
    add("aten::softmax", 35, 10, 3, false);
    add("aten::dropout", 50, 10, 4, false);
    add("aten::bmm", 65, 15, 5, false);
    add("aten::dropout", 90, 7, 6, false);
    add("aten::sin", 97, 3, 7, false);
    add("aten::linear", 100, 20, 8, false);
    for (int sequence = 8; sequence >= 1; --sequence)
      add("autograd::engine::evaluate_function: XBackward0", 300 - 10 * sequence, sequence,
          sequence, true);
    const Imported imported = parse_kineto(text + "]}", "trace.json", network);
    ASSERT_EQ(imported.layers.size(), 4u);
    const std::vector<std::pair<double, double>> expected = {{10, 1}, {60, 14}, {7, 6}, {20, 8}};
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(imported.layers[i].forward.value.value(), 1e-6 * expected[i].first, 1e-12) << i;
      EXPECT_NEAR(imported.layers[i].backward.value.value(), 1e-6 * expected[i].second, 1e-12) << i;
    }
    EXPECT_THAT(imported.remarks,
                Contains("layers of kind first_token are left out: no operator alone tells the "
                         "network's 1"));
    EXPECT_THAT(imported.remarks,
                Contains(HasSubstr("time of the layers by kind: attention 58.7 %")));
    EXPECT_THAT(imported.remarks, Contains(HasSubstr("of forward belongs to no layer: aten::sin")));
    EXPECT_THAT(imported.remarks,
                Contains("19 % of backward belongs to no layer: XBackward 19.4 %"));
  }
}

// Names from generated code have line ends in them, and paths of Windows have backslashes.
TEST(Kineto, StringsThatAreNotEscapedAreRead) {
  const std::string event =
      "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"C:\\users\\p\ny \\\\ \\\" "
      "\\u0041\", \"ts\": 1617000000000000, \"dur\": 2, \"pid\": 1, \"tid\": 1},";
  std::string text = golden_import("kineto/1.8-operators.json");
  const std::size_t at = text.find("[") + 1;
  expect_planted(parse_kineto(text.insert(at, event), "trace.json", tiny_net()));
}

TEST(Kineto, AKindThatDoesNotFitIsLeftOutAndSaid) {
  std::string text = golden_import("kineto/1.8-operators.json");
  for (std::size_t at; (at = text.find("aten::batch_norm")) != std::string::npos;)
    text.replace(at, 16, "aten::group_norm");
  const Imported imported = parse_kineto(text, "trace.json", tiny_net());
  EXPECT_EQ(imported.layers.size(), planted.size() - 2);
  EXPECT_THAT(
      imported.remarks,
      Contains("layers of kind batch_norm are left out: the network has 2, an iteration of the "
               "trace 0"));
}

TEST(Kineto, BackwardOfNoLayerIsSaid) {
  EXPECT_THAT(parsed("1.8-operators.json").remarks,
              Contains(HasSubstr("% of backward belongs to no layer: AccumulateGrad")));
}

TEST(Kineto, ErrorsAreOneLine) {
  const std::string text = golden_import("kineto/2.5-named.json");
  EXPECT_THAT(error_of_text(text.substr(0, text.size() / 2)), HasSubstr("the JSON ends early"));
  EXPECT_THAT(error_of_text("{\"traceEvents\": [{\"ph\": \"X\",}]}"),
              HasSubstr("trace.json:1:29: this is not JSON"));
  EXPECT_EQ(error_of_text("{}"),
            "trace.json: there are no events; a trace is an array of events, or an object with "
            "\"traceEvents\"");
  EXPECT_THAT(error_of_text("{\"traceEvents\": [1]}"),
              HasSubstr("event 1: an event that is no object"));
  EXPECT_THAT(error_of_text("{\"traceEvents\": [{\"ts\": -1}]}"), HasSubstr("event 1: a time"));
  EXPECT_THAT(error_of_text("{\"traceEvents\": [{\"ts\": \"x\"}]}"), HasSubstr("event 1: a time"));
  EXPECT_THAT(error_of_text("{\"traceEvents\": []}"), HasSubstr("no operators of PyTorch"));
  EXPECT_THAT(error_of_text("\x1f\x8b\x08"), HasSubstr("gunzip"));
  EXPECT_THAT(error_of_text("{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
                            "\"aten::sin\", \"ts\": 1, \"dur\": 2, \"pid\": 1, \"tid\": 1}]}"),
              HasSubstr("no layer of tiny-net is found"));
}

// Whatever is cut out of a trace, or put into it, the reader says a line or reads what is left.
RC_GTEST_PROP(KinetoProperty, SurvivesDamage, ()) {
  static const std::string whole = golden_import("kineto/2.5-cuda.json");
  static const models::Network network = tiny_net();
  std::string text = whole;
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  const auto length = *rc::gen::inRange<std::size_t>(0, 2000);
  const std::string put = *rc::gen::element<std::string>("", "{", "]", "\"", "1e999", "-1", "null");
  text.replace(at, length, put);
  const std::string error =
      test::error_of([&] { return parse_kineto(text, "trace.json", network); });
  RC_ASSERT(error.find('\n') == std::string::npos);
}

TEST(Kineto, DeepNestingIsNoDanger) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(error_of_text("{\"traceEvents\": [{\"args\": {\"a\": " + deep),
              HasSubstr("ends early"));
}

}  // namespace
}  // namespace paceline::calibration
