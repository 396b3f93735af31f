// Memory of the host that is used again, and pages of it that are given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "runtime/device/host_pages.h"
#include "runtime/device/spare_memory.h"

namespace paceline::runtime {
namespace {

TEST(SpareMemory, IsTheSmallestThatSuffices) {
  SpareMemory spare;
  Memory small = spare.take(100);
  Memory large = spare.take(1000);
  const std::byte* const of_small = small.data();
  const std::byte* const of_large = large.data();
  EXPECT_NE(of_small, of_large);
  spare.put_back(std::move(large));
  spare.put_back(std::move(small));
  spare.put_back({});
  Memory first = spare.take(50);
  EXPECT_EQ(first.data(), of_small);
  EXPECT_GE(first.size(), 50U);
  EXPECT_EQ(spare.take(50).data(), of_large);
}

// Buckets of any sizes, two at a time, need no more than two of the largest.
TEST(SpareMemory, DoesNotGrowBeyondTheLargest) {
  SpareMemory spare;
  for (std::size_t bytes = 1 << 12; bytes < 1 << 20; bytes += 1 << 12) {
    Memory a = spare.take(bytes);
    Memory b = spare.take(bytes);
    spare.put_back(std::move(a));
    spare.put_back(std::move(b));
  }
  std::size_t sum = 0;
  for (int i = 0; i < 2; ++i) sum += spare.take(1).size();
  EXPECT_LT(sum, std::size_t{2} << 20);
  EXPECT_EQ(spare.take(1).size(), 1U);  // there were two
}

TEST(HostPages, AreGivenBackButForWhatIsKept) {
  constexpr std::int64_t elements = 1 << 20;
  const Memory memory = host_memory(elements * sizeof(float));
  const ArrayView array = memory.array(NumberType::fp32);
  use_small_pages(array);
  const std::span<float> values = host_floats(array);
  std::ranges::fill(values, 1.0F);
  const models::Elements kept{elements / 2 + 5, 1000};
  give_back_all_but(kept, {elements / 4, elements / 2}, array);
  const auto of = [&](std::int64_t begin, std::int64_t size) {
    return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  };
  const auto are_ones = [](std::span<float> part) {
    return std::ranges::all_of(part, [](float v) { return v == 1.0F; });
  };
  EXPECT_TRUE(are_ones(of(0, elements / 4)));
  EXPECT_TRUE(are_ones(of(kept.begin, kept.size)));
  EXPECT_TRUE(are_ones(of(elements / 4 * 3, elements / 4)));
  // Pages at the ends are shared with what is kept.
  constexpr std::int64_t page = 1024;
  EXPECT_EQ(std::ranges::count(of(elements / 4 + page, elements / 8), 0.0F), elements / 8);
  EXPECT_EQ(std::ranges::count(of(elements / 8 * 5, elements / 8 - page), 0.0F),
            elements / 8 - page);
}

}  // namespace
}  // namespace paceline::runtime
