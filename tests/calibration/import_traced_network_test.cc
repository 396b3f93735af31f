// A network from a trace that has shapes, and what a trace does not say.
#include "calibration/import/traced_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "calibration/import/kineto.h"
#include "models/network/yaml.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* shaped = "pytorch/2.5-shapes.json";

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { return traced_network(text, "trace.json", "traced"); });
}

TEST(TracedNetwork, LayersHaveTheirShapes) {
  const TracedNetwork traced = traced_network(golden_import(shaped), "trace.json", "traced");
  EXPECT_EQ(traced.batch, 4);
  const models::Network expected = models::parse_network_yaml(R"(
network: traced
input: [3, 16, 16]
layers:
  - {name: conv1, kind: convolution, channels: 8, kernel: 3, padding: 1, bias: false}
  - {name: bn1, kind: batch_norm}
  - {name: relu1, kind: relu}
  - {name: pool1, kind: max_pool, kernel: 3, stride: 2, padding: 1}
  - {name: conv2, kind: convolution, channels: 16, kernel: [3, 1], stride: 2, padding: [1, 0], groups: 2}
  - {name: relu2, kind: relu}
  - {name: pool2, kind: adaptive_average_pool, output: 1}
  - {name: flatten1, kind: flatten}
  - {name: dropout1, kind: dropout, probability: 0.25}
  - {name: fc1, kind: fully_connected, outputs: 10}
  - {name: loss1, kind: softmax_cross_entropy}
)",
                                                              "expected.yaml");
  EXPECT_EQ(models::to_yaml(traced.network), models::to_yaml(expected));
  EXPECT_THAT(traced.remarks, Contains(HasSubstr("11 operators of forward became layers: 1 "
                                                 "aten::adaptive_avg_pool2d, 1 aten::batch_norm, 2 "
                                                 "aten::conv2d")));
}

// The layers of the network are then found in the trace, every one.
TEST(TracedNetwork, IsTimedByTheSameTrace) {
  const std::string text = golden_import(shaped);
  const models::Network network = traced_network(text, "trace.json", "traced").network;
  const Imported imported = parse_kineto(text, "trace.json", network);
  EXPECT_EQ(imported.layers.size(), network.layers().size());
  EXPECT_EQ(imported.iterations, 3u);
}

std::string all_replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(TracedNetwork, WhatATraceDoesNotSayIsRefused) {
  const std::string text = golden_import(shaped);
  EXPECT_THAT(error_of_text(golden_import("pytorch/1.13-autograd-profiler.json")),
              HasSubstr("trace.json: this form of trace has no shapes, and so no network; give"));
  EXPECT_THAT(error_of_text(golden_import("kineto/2.5-named.json")),
              HasSubstr("trace.json: aten::conv2d: the trace has no shapes; profile with "
                        "record_shapes=True; give --model"));
  EXPECT_THAT(error_of_text(all_replaced(text, "Concrete Inputs", "Concrete")),
              HasSubstr("aten::conv2d: input 3 is not told; PyTorch writes it from 2.1 on"));
  EXPECT_THAT(error_of_text(all_replaced(text, "aten::dropout", "aten::add")),
              HasSubstr("aten::add: branches meet in it"));
  EXPECT_THAT(error_of_text(all_replaced(text, "aten::dropout", "aten::group_norm")),
              HasSubstr("aten::group_norm: it is no layer that is known here"));
  EXPECT_THAT(
      error_of_text(
          all_replaced(text, "[[4, 8, 8, 8], [16, 4, 3, 1]", "[[4, 8, 16, 16], [16, 4, 3, 1]")),
      HasSubstr("conv2: it reads an image 8x16x16, and the layer before it, pool1, makes an "
                "image 8x8x8"));
  EXPECT_THAT(error_of_text(all_replaced(text, "\"[2, 2]\", \"[1, 0]\"", "\"[2, x]\", \"[1, 0]\"")),
              HasSubstr("aten::conv2d: input 3 is '[2, x]'"));
}

RC_GTEST_PROP(TracedNetworkProperty, SurvivesDamage, ()) {
  static const std::string whole = golden_import(shaped);
  std::string text = whole;
  for (int i = 0; i < 3; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto length = *rc::gen::inRange<std::size_t>(0, 30);
    const std::string put =
        *rc::gen::element<std::string>("", "0", "-1", "[", "]", "[[", "1e18", "\"", ",");
    text.replace(at, length, put);
  }
  RC_ASSERT(error_of_text(text).find('\n') == std::string::npos);
}

}  // namespace
}  // namespace paceline::calibration
