// Tests hold the parts of a network that ranks run against the parts that are predicted.
#include "models/layout/tensor_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "models/base/to_size.h"
#include "models/layout/layout.h"
#include "models/layout/rank_work.h"
#include "models/network/decoder.h"
#include "models/network/work.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using test::error_of;

Network little(bool is_tied, bool has_gate, std::int64_t key_value_heads) {
  return decoder({.name = "little",
                  .blocks = 2,
                  .features = 24,
                  .heads = 12,
                  .key_value_heads = key_value_heads,
                  .head_features = 2,
                  .inner = 36,
                  .vocabulary = 48,
                  .sequence = 5,
                  .rotary_base = 100,
                  .is_tied = is_tied,
                  .has_gate = has_gate,
                  .rms_norm = has_gate});
}

std::vector<Network> networks() {
  std::vector<Network> all = {zoo_network("gpt2-tiny")};
  for (const bool is_tied : {true, false})
    for (const bool has_gate : {true, false})
      for (const std::int64_t shared : {12, 6}) all.push_back(little(is_tied, has_gate, shared));
  return all;
}

std::vector<float> numbered(std::int64_t elements) {
  std::vector<float> values(to_size(elements));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

std::int64_t elements_of(const Network& network) {
  std::int64_t sum = 0;
  for (const Gradient& gradient : work(network).gradients) sum += gradient.elements;
  return sum;
}

TEST(TensorPart, OfAllRanksHasEachElementOnce) {
  for (const Network& network : networks())
    for (const int ranks : {1, 2, 3, 6}) {
      if (network.name() == "gpt2-tiny" && ranks == 3) continue;  // 256 entries
      if (network.name() == "gpt2-tiny" && ranks == 6) continue;
      SCOPED_TRACE(network.name() + " on " + std::to_string(ranks));
      const std::vector<float> whole = numbered(elements_of(network));
      std::vector<float> made(whole.size(), -1.0F);
      std::vector<int> split_times(whole.size(), 0);
      for (int rank = 0; rank < ranks; ++rank) {
        const TensorPart part = tensor_part(network, ranks, rank);
        const std::vector<float> own = part_of(part, whole);
        EXPECT_EQ(static_cast<std::int64_t>(own.size()), elements_of(part.network));
        put_part(part, own, made);
        std::size_t next = 0;
        for (const TensorCut& cut : part.cuts)
          for (std::int64_t i = 0; i < cut.repeats; ++i)
            for (const Elements& span : cut.spans)
              for (std::int64_t e = 0; e < span.size; ++e, ++next)
                if (cut.is_split) ++split_times[to_size(static_cast<std::int64_t>(own[next]))];
      }
      EXPECT_EQ(made, whole);
      EXPECT_LE(*std::ranges::max_element(split_times), 1) << "a split element is on one rank";
    }
}

// A part that is run has the gradients and exchanges that are predicted.
TEST(TensorPart, IsThatOfThePrediction) {
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name());
    const RankWork predicted = rank_work(work(network), {.tensor = 2, .sequence_parallel = false});
    const TensorPart part = tensor_part(network, 2, 1);
    const NetworkWork run = work(part.network);
    ASSERT_EQ(run.gradients.size(), predicted.network.gradients.size());
    for (std::size_t i = 0; i < run.gradients.size(); ++i) {
      EXPECT_EQ(run.gradients[i].name, predicted.network.gradients[i].name);
      EXPECT_EQ(run.gradients[i].elements, predicted.network.gradients[i].elements)
          << run.gradients[i].name;
    }
    for (std::size_t i = 0; i < run.layers.size(); ++i) {
      if (run.layers[i].kind == "softmax_cross_entropy") continue;
      const auto sums = [&](std::optional<Collective> Exchange::*way) {
        return std::ranges::any_of(predicted.exchanges[i], [&](const Exchange& exchange) {
          return exchange.*way == Collective::all_reduce;
        });
      };
      EXPECT_EQ(part.sums_output[i], sums(&Exchange::forward)) << run.layers[i].name;
      EXPECT_EQ(part.sums_gradient[i], sums(&Exchange::backward)) << run.layers[i].name;
    }
    EXPECT_TRUE(part.splits_loss);
    EXPECT_EQ(part.network.layers().size(), network.layers().size());
  }
}

TEST(TensorPart, SaysWhatCannotBeShared) {
  const auto error = [](const Network& network, int ranks) {
    return error_of([&] { static_cast<void>(tensor_part(network, ranks, 0)); });
  };
  EXPECT_EQ(error(zoo_network("gpt2-small"), 2),
            "--tensor: 2 ranks for the 50257 entries of layer 'wte'; choose a divisor of 50257");
  EXPECT_EQ(error(little(true, true, 6), 12),
            "--tensor: 12 ranks for the 6 heads of keys and values of layer 'h0.attn'; "
            "choose a divisor of 6");
  EXPECT_EQ(
      error(zoo_network("resnet50"), 2),
      "--tensor: resnet50 has no attention; give a language model as --model, or leave it out");
  // Blocks of BERT norm what they leave, so that a residual and a layer with split weights read the same.
  const std::string of_bert = error(zoo_network("bert-base"), 2);
  EXPECT_NE(of_bert.find("is read by layers with whole and with split weights"), std::string::npos)
      << of_bert;
}

}  // namespace
}  // namespace paceline::models
