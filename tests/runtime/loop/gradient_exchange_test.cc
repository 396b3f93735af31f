#include "runtime/exchange/gradient_exchange.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

#include "models/base/error.h"
#include "models/base/random.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "runtime/collective/executor.h"
#include "tests/support/late_device.h"
#include "tests/support/rank_threads.h"

namespace paceline::runtime {
namespace {

using models::NumberType;
using testing::on_ranks;

struct Case {
  const char* strategy;
  int ranks;
  NumberType wire;
  models::Overlap overlap;
  int streams;
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string text = std::string(info.param.strategy) + "_" + std::to_string(info.param.ranks) +
                     "_" + std::string(name(info.param.wire)) + "_" +
                     std::string(name(info.param.overlap)) + "_" +
                     std::to_string(info.param.streams);
  for (char& c : text) c = c == '-' ? '_' : c;
  return text;
}

models::Plan plan_of(const Case& c, const models::Network& network) {
  models::Plan plan = models::make_plan(
      models::strategy(c.strategy), models::work(network).gradients, c.ranks, c.wire,
      {.fusion = Bytes{40e3}, .group_size = c.ranks % 2 == 0 ? 2 : 1, .streams = c.streams});
  plan.overlap = c.overlap;
  return plan;
}

// Small whole numbers, whose sums are exact in every wire type and order.
float value(int rank, std::int64_t iteration, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + element * 3 +
                             static_cast<std::size_t>(iteration) * 5) %
                            11) -
         5;
}

// A device announces gradients where a bucket is complete, and need not before.
TEST(GradientExchange, ActsOnTheLastGradientOfEachBucket) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  const int last = static_cast<int>(places.size()) - 1;
  for (const int ranks : {1, 2}) {
    for (const models::Overlap overlap : {models::Overlap::wait_free, models::Overlap::none}) {
      const models::Plan plan =
          plan_of({"fused-ring", ranks, NumberType::fp32, overlap, 1}, network);
      std::vector<int> expected;
      int gradients = 0;
      for (const models::Bucket& bucket : plan.buckets)
        expected.push_back((gradients += bucket.gradient_count) - 1);
      ASSERT_GT(expected.size(), 1U);
      if (ranks == 1 || overlap == models::Overlap::none) expected = {last};
      on_ranks(ranks, 1, [&](Transport& transport) {
        EXPECT_EQ(GradientExchange(transport, plan, places).acts_on(), expected);
      });
    }
  }
}

class Exchange : public ::testing::TestWithParam<Case> {};

TEST_P(Exchange, GivesEveryRankTheSumOfEveryIteration) {
  const Case& c = GetParam();
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  const models::Plan plan = plan_of(c, network);
  on_ranks(c.ranks, plan.streams, [&](Transport& transport) {
    GradientExchange exchange(transport, plan, places);
    std::size_t elements = 0;
    for (const ParameterPlace& place : places) elements += static_cast<std::size_t>(place.elements);
    std::array<std::vector<float>, 2> gradients = {std::vector<float>(elements),
                                                   std::vector<float>(elements)};
    const auto check = [&](std::int64_t iteration) {
      const GradientExchange::Outcome outcome = exchange.finish();
      EXPECT_TRUE(outcome.finite);
      const std::vector<float>& sum = gradients[static_cast<std::size_t>(iteration % 2)];
      for (std::size_t i = 0; i < elements; ++i) {
        float expected = 0;
        for (int rank = 0; rank < c.ranks; ++rank) expected += value(rank, iteration, i);
        ASSERT_EQ(sum[i], expected) << "iteration " << iteration << " element " << i;
      }
    };
    Random random(static_cast<std::uint64_t>(transport.rank()) + 1);
    const bool delayed = c.overlap == models::Overlap::double_buffered;
    for (std::int64_t iteration = 0; iteration < 6; ++iteration) {
      std::vector<float>& own = gradients[static_cast<std::size_t>(iteration % 2)];
      exchange.begin(own, iteration);
      for (std::size_t p = 0; p < places.size(); ++p) {
        const auto first = static_cast<std::size_t>(places[p].offset);
        for (std::size_t i = 0; i < static_cast<std::size_t>(places[p].elements); ++i)
          own[first + i] = value(transport.rank(), iteration, first + i);
        if (random.below(4) == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
        exchange.ready(static_cast<int>(p));
      }
      if (!delayed) check(iteration);
      if (delayed && iteration > 0) check(iteration - 1);
    }
    if (delayed) check(5);
    EXPECT_EQ(exchange.under_way(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Exchange,
    ::testing::Values(
        Case{"fused-ring", 2, NumberType::fp32, models::Overlap::wait_free, 1},
        Case{"fused-ring", 3, NumberType::fp16, models::Overlap::wait_free, 1},
        Case{"ring", 4, NumberType::bf16, models::Overlap::wait_free, 3},
        Case{"hybrid", 4, NumberType::fp16, models::Overlap::none, 2},
        Case{"halving-doubling", 5, NumberType::fp32, models::Overlap::double_buffered, 2},
        Case{"fused-ring", 2, NumberType::fp16, models::Overlap::double_buffered, 1},
        Case{"parameter-server", 3, NumberType::fp32, models::Overlap::wait_free, 1},
        Case{"double-binary-tree", 4, NumberType::bf16, models::Overlap::double_buffered, 1},
        Case{"fused-ring", 1, NumberType::fp16, models::Overlap::double_buffered, 1}),
    case_name);

// The same on a device whose kernels are done late. A stream computes the gradients, in memory that
// the host cannot touch, and the exchange gets tokens of them.
class LateExchange : public ::testing::TestWithParam<Case> {};

void exchange_late(const Case& c, test::Lateness lateness, std::uint64_t seed) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  const models::Plan plan = plan_of(c, network);
  on_ranks(c.ranks, plan.streams, [&](Transport& inner) {
    test::LateDevice device(lateness, seed * 10 + static_cast<std::uint64_t>(inner.rank()));
    test::LateTransport transport(inner, device);
    Executor executor(transport, device);
    const auto elements = static_cast<std::size_t>(places.back().offset + places.back().elements);
    // Iterations take these in turn: what the stream computes from, and the gradients.
    std::array<Memory, 2> sources;
    std::array<Memory, 2> gradients;
    for (std::size_t i = 0; i < 2; ++i) {
      sources[i] = device.allocate(elements * sizeof(float), MemoryKind::pinned);
      gradients[i] = device.allocate(elements * sizeof(float), MemoryKind::device);
    }
    const Memory result = device.allocate(elements * sizeof(float), MemoryKind::pinned);
    const auto compute = device.make_stream();
    const auto update = device.make_stream();
    GradientExchange exchange(executor, device, plan, places);
    const auto check = [&](std::int64_t iteration) {
      EXPECT_TRUE(exchange.finish().finite);
      const auto slot = static_cast<std::size_t>(iteration % 2);
      update->start(Cast{gradients[slot].array(NumberType::fp32), result.array(NumberType::fp32)});
      wait_for(update->record(), Seconds{60}, "copy the sums");
      const std::span<const float> sum = host_floats(result.array(NumberType::fp32));
      for (std::size_t i = 0; i < elements; ++i) {
        float expected = 0;
        for (int rank = 0; rank < c.ranks; ++rank) expected += value(rank, iteration, i);
        ASSERT_EQ(sum[i], expected) << "iteration " << iteration << " element " << i;
      }
    };
    const bool delayed = c.overlap == models::Overlap::double_buffered;
    for (std::int64_t iteration = 0; iteration < 4; ++iteration) {
      const auto slot = static_cast<std::size_t>(iteration % 2);
      const ArrayView source = sources[slot].array(NumberType::fp32);
      const ArrayView own = gradients[slot].array(NumberType::fp32);
      for (std::size_t i = 0; i < elements; ++i)
        host_floats(source)[i] = value(inner.rank(), iteration, i);
      exchange.begin(own, iteration);
      for (std::size_t p = 0; p < places.size(); ++p) {
        const auto first = static_cast<std::size_t>(places[p].offset);
        const auto count = static_cast<std::size_t>(places[p].elements);
        compute->start(Cast{source.part(first, count), own.part(first, count)});
        exchange.ready(static_cast<int>(p), compute->record());
      }
      if (!delayed) check(iteration);
      if (delayed && iteration > 0) check(iteration - 1);
      ASSERT_THAT(device.hazards(), ::testing::IsEmpty());
    }
    if (delayed) check(3);
    EXPECT_THAT(device.hazards(), ::testing::IsEmpty());
  });
}

TEST_P(LateExchange, GivesEveryRankTheSumHoweverLateTheDeviceIs) {
  exchange_late(GetParam(), test::Lateness::eager, 1);
  exchange_late(GetParam(), test::Lateness::latest, 2);
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    exchange_late(GetParam(), test::Lateness::random, seed);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LateExchange,
    ::testing::Values(Case{"fused-ring", 2, NumberType::fp32, models::Overlap::wait_free, 1},
                      Case{"ring", 3, NumberType::fp16, models::Overlap::wait_free, 3},
                      Case{"hybrid", 4, NumberType::bf16, models::Overlap::none, 2},
                      Case{"fused-ring", 2, NumberType::fp16, models::Overlap::double_buffered, 1},
                      Case{"parameter-server", 3, NumberType::fp16, models::Overlap::wait_free, 3},
                      Case{"fused-ring", 1, NumberType::fp16, models::Overlap::wait_free, 1}),
    case_name);

TEST(GradientExchange, FindsAnOverflowOnALateDevice) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  const models::Plan plan =
      plan_of({"fused-ring", 2, NumberType::fp16, models::Overlap::wait_free, 1}, network);
  on_ranks(2, 1, [&](Transport& transport) {
    test::LateDevice device(test::Lateness::latest, 3);
    Executor executor(transport, device);
    const auto elements = static_cast<std::size_t>(places.back().offset + places.back().elements);
    const Memory source = device.allocate(elements * sizeof(float), MemoryKind::pinned);
    const Memory gradients = device.allocate(elements * sizeof(float), MemoryKind::device);
    const auto compute = device.make_stream();
    GradientExchange exchange(executor, device, plan, places);
    for (const float last : {1e6F, 1.0F}) {
      std::ranges::fill(host_floats(source.array(NumberType::fp32)), 1.0F);
      if (transport.rank() == 1) host_floats(source.array(NumberType::fp32)).back() = last;
      exchange.begin(gradients.array(NumberType::fp32), 0);
      compute->start(Cast{source.array(NumberType::fp32), gradients.array(NumberType::fp32)});
      exchange.ready(static_cast<int>(places.size()) - 1, compute->record());
      EXPECT_EQ(exchange.finish().finite, last == 1.0F);
    }
  });
}

TEST(GradientExchange, SaysWhenTheOldestIsBack) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  const models::Plan plan =
      plan_of({"fused-ring", 2, NumberType::fp32, models::Overlap::wait_free, 1}, network);
  on_ranks(2, 1, [&](Transport& transport) {
    GradientExchange exchange(transport, plan, places);
    std::vector<float> gradients(static_cast<std::size_t>(models::work(network).parameters()));
    exchange.begin(gradients, 0);
    EXPECT_FALSE(exchange.is_back());
    exchange.ready(static_cast<int>(places.size()) - 1);
    while (!exchange.is_back()) std::this_thread::yield();
    EXPECT_TRUE(exchange.finish().finite);
  });
}

TEST(GradientExchange, AnOverflowOfOneRankIsSeenByAll) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e6F}) {
    for (const NumberType wire : {NumberType::fp16, NumberType::fp32}) {
      const bool overflows = wire == NumberType::fp16 || !std::isfinite(bad);
      const models::Plan plan =
          plan_of({"fused-ring", 3, wire, models::Overlap::wait_free, 1}, network);
      on_ranks(3, 1, [&](Transport& transport) {
        GradientExchange exchange(transport, plan, places);
        const ParameterPlace& last = places.back();
        std::vector<float> gradients(static_cast<std::size_t>(last.offset + last.elements), 1.0F);
        if (transport.rank() == 1) gradients[12345] = bad;
        exchange.begin(gradients, 0);
        exchange.ready(static_cast<int>(places.size()) - 1);
        EXPECT_EQ(exchange.finish().finite, !overflows);
      });
    }
  }
}

TEST(GradientExchange, NamesARankThatIsGone) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  const models::Plan plan =
      plan_of({"fused-ring", 2, NumberType::fp32, models::Overlap::wait_free, 1}, network);
  const auto errors = testing::errors_of_ranks(2, 1, [&](Transport& transport) {
    GradientExchange exchange(transport, plan, places);
    const ParameterPlace& last = places.back();
    std::vector<float> gradients(static_cast<std::size_t>(last.offset + last.elements), 1.0F);
    exchange.begin(gradients, 0);
    if (transport.rank() == 1) throw RunError("go on", "the test says so");
    exchange.ready(static_cast<int>(places.size()) - 1);
    static_cast<void>(exchange.finish());
  });
  try {
    ASSERT_TRUE(errors[0]);
    std::rethrow_exception(errors[0]);
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 1"));
  }
}

TEST(GradientExchange, RefusesPlansThatItCannotRun) {
  const models::Network network = models::zoo_network("cnn-small");
  const std::vector<ParameterPlace> places = parameter_places(network);
  on_ranks(1, 1, [&](Transport& transport) {
    models::Plan plan =
        plan_of({"fused-ring", 1, NumberType::fp32, models::Overlap::priority, 1}, network);
    EXPECT_THROW(GradientExchange(transport, plan, places), InputError);
    plan = plan_of({"nccl", 1, NumberType::fp32, models::Overlap::wait_free, 1}, network);
    EXPECT_THROW(GradientExchange(transport, plan, places), InputError);
    plan = plan_of({"fused-ring", 2, NumberType::fp32, models::Overlap::wait_free, 1}, network);
    EXPECT_THROW(GradientExchange(transport, plan, places), InputError);
    plan = plan_of({"fused-ring", 1, NumberType::fp32, models::Overlap::wait_free, 1},
                   models::zoo_network("resnet-small"));
    EXPECT_THROW(GradientExchange(transport, plan, places), InputError);
  });
}

}  // namespace
}  // namespace paceline::runtime
