// The double finds what it is there to find: each missing wait, in every mode, and nothing where
// all waits are there.
#include "tests/support/late_device.h"

#include <gmock/gmock.h>

#include <array>

#include "runtime/transport/thread_transport.h"

namespace paceline::test {
namespace {

using runtime::Add;
using runtime::ArrayView;
using runtime::Cast;
using runtime::Memory;
using runtime::MemoryKind;
using runtime::NumberType;
using runtime::Token;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LateDeviceTest : public ::testing::TestWithParam<Lateness> {
 protected:
  ArrayView ones() {
    held_.push_back(device_.allocate(64, MemoryKind::pinned));
    const ArrayView view = held_.back().array(NumberType::fp32);
    std::ranges::fill(runtime::host_floats(view), 1.0F);
    return view;
  }
  static float first(const ArrayView& view) { return runtime::host_floats(view)[0]; }

  LateDevice device_{GetParam(), 7};
  std::vector<Memory> held_;
};

TEST_P(LateDeviceTest, RunsKernelsInTheOrderOfTheirStream) {
  const auto stream = device_.make_stream();
  const ArrayView a = ones();
  const ArrayView b = ones();
  stream->start(Add{a, b});
  stream->start(Add{b, a});
  const Token token = stream->record();
  runtime::wait_for(token, Seconds{1}, "wait");
  EXPECT_TRUE(token.is_done());
  EXPECT_EQ(first(a), 3);
  EXPECT_EQ(first(b), 2);
  EXPECT_THAT(device_.hazards(), IsEmpty());
}

TEST_P(LateDeviceTest, IsDoneOnceTestedOftenEnough) {
  const auto stream = device_.make_stream();
  const ArrayView a = ones();
  stream->start(Add{ones(), a});
  const Token token = stream->record();
  int tests = 1;
  while (!token.is_done()) ++tests;
  EXPECT_EQ(first(a), 2);
  EXPECT_LT(tests, 1000);
  EXPECT_EQ(device_.kernels(), 1);
}

TEST_P(LateDeviceTest, AStreamThatWaitsForAnotherIsOrdered) {
  const auto one = device_.make_stream();
  const auto two = device_.make_stream();
  const ArrayView a = ones();
  const ArrayView b = ones();
  one->start(Add{ones(), a});
  two->wait_for(one->record());
  two->start(Add{a, b});
  runtime::wait_for(two->record(), Seconds{1}, "wait");
  EXPECT_EQ(first(b), 3);
  // The second stream waited for the first, and the host for the second.
  device_.touch({a.data, a.bytes()}, true, "the host");
  EXPECT_THAT(device_.hazards(), IsEmpty());
}

TEST_P(LateDeviceTest, FindsAStreamThatDoesNotWait) {
  const auto one = device_.make_stream();
  const auto two = device_.make_stream();
  const ArrayView a = ones();
  one->start(Add{ones(), a});
  two->start(Cast{a, ones()});
  EXPECT_THAT(device_.hazards(),
              ElementsAre("Cast 1 of stream 1 reads 64 bytes and does not wait for Add 1 of "
                          "stream 0"));
}

TEST_P(LateDeviceTest, FindsAHostThatDoesNotWait) {
  const auto stream = device_.make_stream();
  const ArrayView a = ones();
  const ArrayView b = ones();
  stream->start(Add{a, b});
  device_.touch({a.data, 4}, false, "the host");
  EXPECT_THAT(device_.hazards(), IsEmpty());  // both read
  device_.touch({a.data, 4}, true, "the host");
  device_.touch({b.data, 4}, false, "the host");
  ASSERT_EQ(device_.hazards().size(), 2U);
  runtime::wait_for(stream->record(), Seconds{1}, "wait");
  device_.touch({b.data, 4}, true, "the host");
  EXPECT_EQ(device_.hazards().size(), 2U);
}

// A send of what is still being added, a receive over what is still being read, and a sum of what
// is still being received.
TEST_P(LateDeviceTest, FindsMessagesThatDoNotWait) {
  const auto transports = runtime::thread_transports(2);
  LateTransport transport(*transports[0], device_);
  const auto stream = device_.make_stream();
  const ArrayView a = ones();
  const ArrayView b = ones();
  const ArrayView c = ones();
  stream->start(Add{a, b});
  (void)transport.post_send(0, 1, {b.data, b.bytes()});
  ASSERT_EQ(device_.hazards().size(), 1U);
  EXPECT_THAT(device_.hazards()[0], HasSubstr("a send to rank 1 reads 64 bytes"));
  (void)transport.post_receive(0, 1, {a.data, a.bytes()});
  ASSERT_EQ(device_.hazards().size(), 2U);
  EXPECT_THAT(device_.hazards()[1], HasSubstr("a receive from rank 1 writes 64 bytes"));
  const auto receive = transport.post_receive(0, 1, {c.data, c.bytes()});
  EXPECT_EQ(device_.hazards().size(), 2U);
  stream->start(Add{c, ones()});
  ASSERT_EQ(device_.hazards().size(), 3U);
  EXPECT_THAT(device_.hazards()[2], HasSubstr("does not wait for a receive from rank 1"));
  std::array<std::byte, 64> other{};
  (void)transports[1]->post_receive(0, 0, other);
  (void)transports[1]->post_send(0, 0, other);
  (void)transports[1]->post_send(0, 0, other);
  transport.wait(receive);
  stream->start(Cast{c, ones()});
  EXPECT_EQ(device_.hazards().size(), 3U);  // it has come
}

TEST_P(LateDeviceTest, MemoryIsPoisonedAndClosedToTheHost) {
  const Memory pinned = device_.allocate(8, MemoryKind::pinned);
  EXPECT_TRUE(std::isnan(first(pinned.array(NumberType::fp32))));
  const Memory own = device_.allocate(64, MemoryKind::device);
  const auto stream = device_.make_stream();
  const ArrayView back = ones();
  stream->start(Cast{ones(), own.array(NumberType::fp32)});
  stream->start(Cast{own.array(NumberType::fp32), back});
  runtime::wait_for(stream->record(), Seconds{1}, "wait");
  EXPECT_EQ(first(back), 1);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH({ own.data()[0] = std::byte{1}; }, "");
}

std::string mode_name(const ::testing::TestParamInfo<Lateness>& info) {
  if (info.param == Lateness::eager) return "eager";
  return info.param == Lateness::latest ? "latest" : "random";
}

INSTANTIATE_TEST_SUITE_P(Modes, LateDeviceTest,
                         ::testing::Values(Lateness::eager, Lateness::latest, Lateness::random),
                         mode_name);

}  // namespace
}  // namespace paceline::test
