#include "runtime/device/cpu_device.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>

#include "models/base/error.h"

namespace paceline::runtime {
namespace {

TEST(CpuDevice, KernelsAreDoneWhenTheyAreStarted) {
  CpuDevice device;
  const auto stream = device.make_stream();
  std::array<float, 3> a = {1, 2, 3};
  std::array<float, 3> b = {10, 20, 30};
  stream->start(Add{view_of(std::span<const float>(a)), view_of(std::span<float>(b))});
  EXPECT_EQ(b, (std::array<float, 3>{11, 22, 33}));
  EXPECT_TRUE(stream->record().is_done());
  EXPECT_EQ(stream->record().source(), nullptr);
}

TEST(CpuDevice, CastsToAndFromEveryTypeAndCopies) {
  CpuDevice device;
  const auto stream = device.make_stream();
  std::array<float, 5> values = {1.0F, -2.5F, 1.0009765625F, 1e6F, 0.0F};
  for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
    const Memory memory = device.allocate(values.size() * bytes_of(type), MemoryKind::pinned);
    const Memory copy = device.allocate(memory.size(), MemoryKind::host);
    std::array<float, 5> back{};
    std::array<float, 5> expected = values;
    if (type == NumberType::fp16) expected[3] = std::numeric_limits<float>::infinity();
    if (type == NumberType::bf16) expected[2] = 1, expected[3] = 999424;
    stream->start(Cast{view_of(std::span<const float>(values)), memory.array(type)});
    stream->start(Cast{memory.array(type), copy.array(type)});
    stream->start(Cast{copy.array(type), view_of(std::span<float>(back))});
    EXPECT_EQ(back, expected) << models::name(type);
  }
}

TEST(CpuDevice, AddsToAWiderSum) {
  CpuDevice device;
  const auto stream = device.make_stream();
  std::array<float, 2> sum = {256, 1};
  const std::array<float, 2> ones = {1, 1};
  const Memory source = device.allocate(4, MemoryKind::host);
  stream->start(Cast{view_of(std::span<const float>(ones)), source.array(NumberType::bf16)});
  stream->start(Add{source.array(NumberType::bf16), view_of(std::span<float>(sum))});
  EXPECT_EQ(sum, (std::array<float, 2>{257, 2}));
}

TEST(CpuDevice, RemembersThatSomethingWasNotFinite) {
  CpuDevice device;
  const auto stream = device.make_stream();
  std::uint32_t found = 0;
  std::array<float, 3> values = {1, 2, 3};
  stream->start(FindNotFinite{view_of(std::span<const float>(values)), &found});
  EXPECT_EQ(found, 0U);
  values[1] = std::numeric_limits<float>::quiet_NaN();
  stream->start(FindNotFinite{view_of(std::span<const float>(values)), &found});
  EXPECT_EQ(found, 1U);
  values[1] = 2;
  stream->start(FindNotFinite{view_of(std::span<const float>(values)), &found});
  EXPECT_EQ(found, 1U);
}

TEST(CpuDevice, CastsManyArraysAtOnce) {
  CpuDevice device;
  const auto stream = device.make_stream();
  const std::array<float, 3> a = {1, 2, 3};
  const std::array<float, 2> b = {4, 1e6F};
  const Memory bucket = device.allocate(10, MemoryKind::host);
  const ArrayView wire = bucket.array(NumberType::fp16);
  std::array<float, 3> a_back{};
  std::array<float, 2> b_back{};
  const CastTable pack({{view_of(std::span<const float>(a)), wire.part(2, 3)},
                        {view_of(std::span<const float>(b)), wire.part(0, 2)}});
  const CastTable unpack({{wire.part(2, 3), view_of(std::span<float>(a_back))},
                          {wire.part(0, 2), view_of(std::span<float>(b_back))}});
  stream->start(CastMany{&pack});
  stream->start(CastMany{&unpack});
  EXPECT_EQ(a_back, a);
  EXPECT_EQ(b_back, (std::array<float, 2>{4, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(unpack.source_type(), NumberType::fp16);
  EXPECT_EQ(unpack.target_type(), NumberType::fp32);
}

TEST(CpuDevice, UnscalesAndLooksAtTheResults) {
  CpuDevice device;
  const auto stream = device.make_stream();
  const std::vector<float> values(10'000, 3);
  const Memory source = device.allocate(2 * values.size(), MemoryKind::host);
  const ArrayView wire = source.array(NumberType::fp16);
  std::vector<float> target(values.size());
  std::uint32_t found = 0;
  stream->start(Cast{view_of(std::span<const float>(values)), wire});
  stream->start(Unscale{wire, view_of(std::span<float>(target)), 0.25F, &found});
  EXPECT_EQ(target, std::vector<float>(values.size(), 0.75F));
  EXPECT_EQ(found, 0U);
  // In place; the product overflows where the number does not.
  target[9'999] = 2e38F;
  const ArrayView own = view_of(std::span<float>(target));
  stream->start(Unscale{own, own, 1, &found});
  EXPECT_EQ(found, 0U);
  stream->start(Unscale{own, own, 2, &found});
  EXPECT_EQ(target[0], 1.5F);
  EXPECT_EQ(found, 1U);
}

// The copies are the new weights of the table's tensors, rounded; what is between tensors stays.
TEST(CpuDevice, UpdatesCopiesWithTheWeights) {
  CpuDevice device;
  const auto stream = device.make_stream();
  const UpdateTable table({{.offset = 0, .elements = 2}, {.offset = 3, .elements = 1}}, false, 1);
  std::array<float, 4> weights = {1, 2, 3, 4};
  const std::array<float, 4> gradients = {0.5F, 1e-6F, 7, 1};
  std::array<float, 4> momentum{};
  const Memory copies = device.allocate(8, MemoryKind::host);
  const ArrayView array = copies.array(NumberType::bf16);
  const WorkingCopies table_of_copies(
      {WorkingCopy::in_order(array.part(0, 2), 0), WorkingCopy::in_order(array.part(3, 1), 3)});
  std::array<float, 4> copied = {9, 9, 9, 9};
  stream->start(Cast{view_of(std::span<const float>(copied)), copies.array(NumberType::bf16)});
  stream->start(UpdateParameters{.table = &table,
                                 .rule = {.learning_rate = 1},
                                 .weights = view_of(std::span<float>(weights)),
                                 .gradients = view_of(std::span<const float>(gradients)),
                                 .momentum = view_of(std::span<float>(momentum)),
                                 .mean_square = {},
                                 .copies = &table_of_copies});
  stream->start(Cast{copies.array(NumberType::bf16), view_of(std::span<float>(copied))});
  EXPECT_EQ(weights, (std::array<float, 4>{0.5F, 2 - 1e-6F, 3, 3}));
  EXPECT_EQ(copied, (std::array<float, 4>{0.5F, 2, 9, 3}));
}

TEST(CpuDevice, AllocatesHostMemoryOfAnySize) {
  CpuDevice device;
  for (const std::size_t bytes : {0UL, 1UL, 4097UL, (1UL << 21) + 3}) {
    const Memory memory = device.allocate(bytes, MemoryKind::pinned);
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_EQ(memory.kind(), MemoryKind::host);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0U);
    std::ranges::fill(memory.bytes(), std::byte{1});
  }
}

TEST(Kernels, SayWhatMemoryTheyTouch) {
  std::array<float, 3> a{};
  std::array<float, 3> b{};
  const auto touched = [](const Kernel& kernel) {
    std::vector<std::pair<const std::byte*, bool>> ranges;
    for_each_access(kernel, [&](const MemoryAccess& access) {
      ranges.emplace_back(access.bytes.data(), access.writes);
    });
    return ranges;
  };
  const auto at = [](const auto& x) { return reinterpret_cast<const std::byte*>(&x); };
  const ConstArrayView source = view_of(std::span<const float>(a));
  const ArrayView target = view_of(std::span<float>(b));
  const std::vector<std::pair<const std::byte*, bool>> both = {{at(a), false}, {at(b), true}};
  EXPECT_EQ(touched(Cast{source, target}), both);
  EXPECT_EQ(touched(Add{source, target}), both);
  std::uint32_t found = 0;
  EXPECT_EQ(touched(Fill{target, 1}),
            (std::vector<std::pair<const std::byte*, bool>>{{at(b), true}}));
  EXPECT_EQ(touched(FindNotFinite{source, &found}),
            (std::vector<std::pair<const std::byte*, bool>>{{at(a), false}, {at(found), true}}));
  EXPECT_EQ(touched(Unscale{source, target, 1, &found}),
            (std::vector<std::pair<const std::byte*, bool>>{
                {at(a), false}, {at(b), true}, {at(found), true}}));
  const CastTable table({{source, target}, {target, view_of(std::span<float>(a))}});
  EXPECT_EQ(touched(CastMany{&table}),
            (std::vector<std::pair<const std::byte*, bool>>{
                {at(a), false}, {at(b), true}, {at(b), false}, {at(a), true}}));
}

// A source that is done at a point in time.
class Later final : public Token::Source {
 public:
  bool is_done(std::uint64_t point) override { return point <= done; }
  bool wait(std::uint64_t point, Seconds) override { return is_done(point); }
  std::uint64_t done = 0;
};

TEST(Token, IsDoneWithoutASource) {
  EXPECT_TRUE(Token().is_done());
  EXPECT_TRUE(Token().wait(Seconds{0}));
}

TEST(Token, IsTestedAndWaitedForAtItsSource) {
  Later later;
  const Token token(later, 3);
  EXPECT_FALSE(token.is_done());
  try {
    wait_for(token, Seconds{0.5}, "add");
    FAIL() << "it is not done";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "cannot add: the device was not done in 0.5 s");
  }
  later.done = 3;
  EXPECT_TRUE(token.is_done());
  EXPECT_NO_THROW(wait_for(token, Seconds{0.5}, "add"));
}

TEST(FastestCommon, PrefersTheFastestKindThatOthersTake) {
  const CpuDevice cpu;
  EXPECT_EQ(fastest_common(cpu, {MemoryKind::host, MemoryKind::pinned}), MemoryKind::host);
  EXPECT_EQ(fastest_common(cpu, {MemoryKind::pinned}), MemoryKind::pinned);
  EXPECT_EQ(fastest_common(cpu, {MemoryKind::device}), std::nullopt);
}

}  // namespace
}  // namespace paceline::runtime
