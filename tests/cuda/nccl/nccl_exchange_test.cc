// Gradients by the NCCL executor: those that streams of a GPU compute come back as the sums over the
// ranks, with overlap and without, on each wire type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "runtime/exchange/gradient_exchange.h"
#include "tests/cuda/nccl/nccl_job.h"

namespace paceline::runtime {
namespace {

using test::NcclRank;

struct Job {
  const char* strategy;
  int ranks;
  NumberType wire;
  models::Overlap overlap;
  int streams;
};

// Small whole numbers, whose sums are exact in every wire type and order.
float value(int rank, std::int64_t iteration, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + element * 3 +
                             static_cast<std::size_t>(iteration) * 5) %
                            11) -
         5;
}

void exchange_on(const NcclRank& r, const models::Plan& plan,
                 std::span<const ParameterPlace> places) {
  const auto elements = static_cast<std::size_t>(places.back().offset + places.back().elements);
  CudaDevice& device = r.device;
  const Memory source = device.allocate(elements * sizeof(float), MemoryKind::pinned);
  const Memory gradients = device.allocate(elements * sizeof(float), MemoryKind::device);
  const auto stream = device.make_stream();
  GradientExchange exchange(r.executor, device, plan, places);
  const ArrayView from = source.array(NumberType::fp32);
  const ArrayView own = gradients.array(NumberType::fp32);
  for (std::int64_t iteration = 0; iteration < 2; ++iteration) {
    const std::span<float> values = host_floats(from);
    for (std::size_t i = 0; i < elements; ++i) values[i] = value(r.rank(), iteration, i);
    exchange.begin(own, iteration);
    for (std::size_t p = 0; p < places.size(); ++p) {
      const auto first = static_cast<std::size_t>(places[p].offset);
      const auto count = static_cast<std::size_t>(places[p].elements);
      stream->start(Cast{from.part(first, count), own.part(first, count)});
      exchange.ready(static_cast<int>(p), stream->record());
    }
    EXPECT_TRUE(exchange.finish().finite);
    stream->start(Cast{own, from});
    wait_for(stream->record(), Seconds{60}, "copy the sums");
    int wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      float expected = 0;
      for (int rank = 0; rank < plan.ranks; ++rank) expected += value(rank, iteration, i);
      wrong += values[i] == expected ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0) << "rank " << r.rank() << " iteration " << iteration;
  }
}

class NcclExchange : public testing::TestWithParam<Job> {};

TEST_P(NcclExchange, GivesEveryRankTheSumOfEveryIteration) {
  const Job& job = GetParam();
  PACELINE_NEEDS_GPUS(job.ranks);
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  models::Plan plan = models::make_plan(
      models::strategy(job.strategy), models::work(network).gradients, job.ranks, job.wire,
      {.fusion = Bytes{40e3}, .group_size = job.ranks % 2 == 0 ? 2 : 1, .streams = job.streams});
  plan.overlap = job.overlap;
  for (const cuda_on_host::Order order :
       {cuda_on_host::Order::eager, cuda_on_host::Order::latest, cuda_on_host::Order::random}) {
    test::begin(order, 4);
    test::run_nccl_job(job.ranks, {.streams = job.streams},
                       [&](const NcclRank& r) { exchange_on(r, plan, places); });
    test::expect_clean();
    if (HasFailure() || !cuda_on_host::present()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, NcclExchange,
    testing::Values(Job{"fused-ring", 1, NumberType::fp16, models::Overlap::wait_free, 1},
                    Job{"fused-ring", 2, NumberType::fp32, models::Overlap::wait_free, 1},
                    Job{"ring", 3, NumberType::fp16, models::Overlap::wait_free, 2},
                    Job{"hybrid", 4, NumberType::bf16, models::Overlap::none, 2},
                    Job{"nccl", 3, NumberType::fp16, models::Overlap::wait_free, 2}));

}  // namespace
}  // namespace paceline::runtime
