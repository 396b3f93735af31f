// Random networks of all kinds of layers that train, for RapidCheck's properties.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/network/network.h"
#include "tests/support/generators.h"

namespace paceline::test {

// Draws a graph of layers on images of 3 x 8 x 8, whose ends are pooled, joined and classified.
inline models::Network drawn_network() {
  struct Drawn {
    std::string name;
    std::int64_t channels;
    std::int64_t size;
    bool read = false;
  };
  models::NetworkBuilder net("drawn", models::Shape::image(3, 8, 8));
  std::vector<Drawn> values = {{"input", 3, 8, true}};
  const int count = drawn(1, 20);
  for (int i = 0; i < count; ++i) {
    const auto pick = [&](std::size_t from) {
      return from + static_cast<std::size_t>(drawn(0, static_cast<int>(values.size() - from) - 1));
    };
    // Mostly the last value, so that chains which are computed together are common.
    const std::size_t x = drawn(0, 3) > 0 ? values.size() - 1 : pick(0);
    Drawn made{fmt::format("l{}", i), values[x].channels, values[x].size};
    models::LayerKind kind = models::Relu{};
    std::vector<std::size_t> inputs = {x};
    switch (drawn(0, 9)) {
      case 0:
      case 1:
        made.channels = drawn(1, 2) * 4;
        kind = models::Convolution{.channels = made.channels,
                                   .kernel = models::square(3),
                                   .padding = models::square(1),
                                   .bias = drawn(0, 1) == 1};
        break;
      case 2:
      case 3:
        kind = models::BatchNorm{};
        break;
      case 4:
        kind = models::AveragePool{{.kernel = models::square(3),
                                    .stride = models::square(1),
                                    .padding = models::square(1)}};
        break;
      case 5:
        kind = models::MaxPool{{.kernel = models::square(3),
                                .stride = models::square(1),
                                .padding = models::square(1)}};
        break;
      case 6:
      case 7: {
        const bool adds = drawn(0, 2) > 0;
        for (std::size_t other = 0; other < values.size(); ++other) {
          const bool fits = values[other].size == made.size &&
                            (!adds || values[other].channels == values[x].channels);
          if (fits && drawn(0, 1) == 1 && inputs.size() < 4) inputs.push_back(other);
        }
        if (inputs.size() < 2) inputs.push_back(x);
        if (adds) {
          kind = models::Add{};
        } else {
          kind = models::Concat{};
          made.channels = 0;
          for (const std::size_t input : inputs) made.channels += values[input].channels;
        }
        break;
      }
      case 8:
        kind = drawn(0, 1) == 1 ? models::LayerKind{models::Dropout{}}
                                : models::LayerKind{models::Lrn{}};
        break;
      default:
        break;  // a ReLU
    }
    std::vector<std::string> names;
    for (const std::size_t input : inputs) {
      names.push_back(values[input].name);
      values[input].read = true;
    }
    net.add(made.name, kind, names);
    values.push_back(made);
  }
  std::vector<std::string> ends;
  for (const Drawn& value : values) {
    if (value.read) continue;
    ends.push_back(net.add(value.name + "_pool", models::AdaptiveAveragePool{models::square(2)},
                           {value.name}));
  }
  if (ends.size() > 1) ends = {net.add("all", models::Concat{}, ends)};
  net.add("flatten", models::Flatten{}, {ends[0]});
  net.add("full", models::FullyConnected{.outputs = 8, .bias = drawn(0, 1) == 1});
  if (drawn(0, 1) == 1) net.add("full_relu", models::Relu{});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace paceline::test
