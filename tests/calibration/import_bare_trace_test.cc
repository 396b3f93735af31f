// Traces of PyTorch built without Kineto: bare lists of events, without categories and sequence
// numbers. Three were written by PyTorch 1.13.1 here; others are those of other tests, made bare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "calibration/import/import_file.h"
#include "calibration/import/kineto.h"
#include "models/network/yaml.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"
#include "tests/support/source_tree.h"

namespace paceline::calibration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

models::Network example(const std::string& name) {
  std::ifstream in(test::source_path("docs/examples/" + name));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return models::parse_network_yaml(text, name);
}

models::Network tiny_net() {
  return example("tiny-net.yaml");
}

Imported parsed(const std::string& text) {
  return parse_kineto(text, "trace.json", tiny_net());
}

// The events of an object of Kineto's as a bare list.
Json bare(const std::string& text) {
  const Json document = Json::parse(text);
  Json list = Json::array();
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    list.push_back({{"name", event["name"]},
                    {"ph", "X"},
                    {"ts", event["ts"]},
                    {"dur", event["dur"]},
                    {"tid", event["tid"]},
                    {"pid", "CPU functions"},
                    {"args", Json::object()}});
  }
  return list;
}

void expect_equal_layers(const Imported& imported, const Imported& expected) {
  ASSERT_EQ(imported.layers.size(), expected.layers.size());
  EXPECT_EQ(imported.iterations, expected.iterations);
  for (std::size_t i = 0; i < imported.layers.size(); ++i) {
    SCOPED_TRACE(imported.layers[i].layer);
    EXPECT_EQ(imported.layers[i].layer, expected.layers[i].layer);
    EXPECT_EQ(imported.layers[i].forward.value, expected.layers[i].forward.value);
    EXPECT_EQ(imported.layers[i].backward.value, expected.layers[i].backward.value);
  }
}

// The order of backward says what the sequence numbers say.
TEST(BareTrace, OrderTellsWhatSequenceNumbersTell) {
  for (const char* file : {"kineto/1.8-operators.json", "kineto/2.5-named.json"}) {
    SCOPED_TRACE(file);
    const std::string text = golden_import(file);
    const Imported imported = parsed(bare(text).dump());
    EXPECT_EQ(imported.version, "without Kineto");
    expect_equal_layers(imported, parsed(text));
  }
}

// Without marks of the profiler, the optimizer's steps end iterations.
TEST(BareTrace, IterationsEndWithTheOptimizersSteps) {
  const std::string text = golden_import("kineto/1.8-operators.json");
  Json list = Json::array();
  std::size_t ends = 0;
  for (const Json& event : bare(text)) {
    const std::string name = event["name"];
    if (name.starts_with("Optimizer.step#")) ++ends;
    if (!name.starts_with("ProfilerStep#")) list.push_back(event);
  }
  ASSERT_EQ(ends, 3u);
  expect_equal_layers(parsed(list.dump()), parsed(text));
}

double microseconds(const Json& event) {
  return event["dur"].get<double>();
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The durations of the k-th of every `of` events of a name, counted by hand in the list.
double median_of(const Json& list, const std::string& name, std::size_t k, std::size_t of) {
  std::vector<double> times;
  std::size_t found = 0;
  for (const Json& event : list) {
    if (event["name"] == name && found++ % of == k) times.push_back(microseconds(event));
  }
  EXPECT_EQ(found, 3 * of) << name;
  return middle(times);
}

// A real transformer: every kind of layer but add is timed, attention without an operator of its own,
// and what has no layer is said by name.
TEST(BareTrace, ATransformersLayersAreTold) {
  const Imported imported = parse_kineto(golden_import("pytorch/1.13-transformer.json"),
                                         "trace.json", example("tiny-encoder.yaml"));
  EXPECT_EQ(imported.iterations, 2u);
  std::map<std::string, const ImportedLayer*> layers;
  for (const ImportedLayer& layer : imported.layers) {
    layers[layer.layer] = &layer;
    EXPECT_GT(layer.forward.value, Seconds{0}) << layer.layer;
    EXPECT_GT(layer.backward.value, Seconds{0}) << layer.layer;
  }
  std::vector<std::string> untold;
  const models::Network network = example("tiny-encoder.yaml");
  for (const models::Layer& layer : network.layers())
    if (!layers.contains(layer.name)) untold.push_back(layer.name);
  EXPECT_THAT(untold, testing::ElementsAre("add", "encoder.add1", "encoder.add2"));
  // Backward of attention is that of its two products and its softmax: 119 + 104 + 12 us in the first
  // iteration, 102 + 16354 + 6 us in the second, and a few us of its dropout.
  EXPECT_NEAR(layers.at("encoder.self_attn")->backward.value.value(), 8.354e-3, 10e-6);
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("Optimizer.step takes 0.126 ms, the median of 2")));
  // The dropout inside attention is attention's: it is none of the network's three.
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("of kind dropout"))));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("layers of kind add are left out")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("time of the layers by kind: ")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("% of forward belongs to no layer: ")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("% of backward belongs to no layer: ")));
}

TEST(BareTrace, RealTracesAreRead) {
  for (const char* file : {"1.13-profiler-schedule.json", "1.13-autograd-profiler.json",
                           "1.13-autograd-profiler-legacy-named.json"}) {
    SCOPED_TRACE(file);
    const std::string text = golden_import(std::string("pytorch/") + file);
    EXPECT_EQ(guessed_format(text, file), ImportFormat::kineto);
    const Imported imported = parsed(text);
    EXPECT_EQ(imported.iterations, 3u);
    ASSERT_EQ(imported.layers.size(), 10u);
    const Json list = Json::parse(text);
    const bool named = std::string(file).find("named") != std::string::npos;
    const std::string engine = "autograd::engine::evaluate_function: ";
    const auto expect = [&](std::size_t layer, double forward, double backward) {
      SCOPED_TRACE(imported.layers[layer].layer);
      EXPECT_NEAR(imported.layers[layer].forward.value.value(), forward * 1e-6, 1e-12);
      EXPECT_NEAR(imported.layers[layer].backward.value.value(), backward * 1e-6, 1e-12);
      EXPECT_EQ(imported.layers[layer].forward.provenance, Provenance::measured);
    };
    const auto forward = [&](const char* name, const char* layer, std::size_t k, std::size_t of) {
      return named ? median_of(list, layer, 0, 1) : median_of(list, name, k, of);
    };
    expect(0, forward("aten::conv2d", "conv1", 0, 2),
           median_of(list, engine + "ConvolutionBackward0", 1, 2));
    expect(3, forward("aten::conv2d", "conv2", 1, 2),
           median_of(list, engine + "ConvolutionBackward0", 0, 2));
    expect(4, forward("aten::batch_norm", "bn2", 1, 2),
           median_of(list, engine + "NativeBatchNormBackward0", 0, 2));
    expect(6, forward("aten::relu", "relu2", 1, 2),
           median_of(list, engine + "ReluBackward0", 0, 2));
  }
}

TEST(BareTrace, AKindWhoseBackwardIsNotToldIsLeftOut) {
  Json list = bare(golden_import("kineto/1.8-operators.json"));
  Json fewer = Json::array();
  bool first = true;
  for (const Json& event : list) {
    const bool is_relu = event["name"] == "autograd::engine::evaluate_function: ReluBackward0";
    if (!is_relu || !first) fewer.push_back(event);
    if (is_relu) first = false;
  }
  // It is left out of the first iteration only: the median is that of the two others.
  const Imported imported = parsed(fewer.dump());
  EXPECT_EQ(imported.layers.size(), 10u);
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("aten::relu is left out: an iteration has 2 in forward and 1 in "
                                 "backward")));
}

TEST(BareTrace, KernelsThatNobodyLaunchedAreSaid) {
  Json list = bare(golden_import("kineto/1.8-operators.json"));
  Json kernel = list[0];
  kernel["pid"] = "CUDA functions";
  list.push_back(kernel);
  EXPECT_THAT(parsed(list.dump()).remarks, Contains(HasSubstr("1 kernels on a GPU are left out")));
}

// DDP over Gloo reduces on threads of its own.
TEST(BareTrace, AllReducesOfGlooAreSaid) {
  Json list = Json::parse(golden_import("pytorch/1.13-autograd-profiler.json"));
  const Imported before = parsed(list.dump());
  for (const int thread : {2, 3})
    list.push_back({{"name", "gloo:all_reduce"},
                    {"ph", "X"},
                    {"ts", 500},
                    {"dur", 1500},
                    {"tid", thread},
                    {"pid", "CPU functions"},
                    {"args", Json::object()}});
  const Imported imported = parsed(list.dump());
  EXPECT_EQ(imported.layers.size(), before.layers.size());
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("2 times gloo:all_reduce, 3 ms in all")));
}

RC_GTEST_PROP(BareTraceProperty, SurvivesDamage, ()) {
  static const std::string whole = golden_import("pytorch/1.13-autograd-profiler.json");
  std::string text = whole;
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  const auto length = *rc::gen::inRange<std::size_t>(0, 3000);
  const std::string put = *rc::gen::element<std::string>("", "{", "]", "\"", "1e999", "-1", "{}, ");
  text.replace(at, length, put);
  const std::string error = test::error_of([&] { return parsed(text); });
  RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace paceline::calibration
