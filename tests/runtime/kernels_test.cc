// Kernels: the portable form against the definition of rounding, in double; every other form
// against the portable one, bit for bit, NaN included.
#include "runtime/tensor/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <ranges>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "runtime/tensor/kernel_forms.h"

namespace paceline::runtime {
namespace {

struct Layout {
  int fraction_bits;
  int smallest_exponent;  // of normal numbers
  int largest_exponent;
};
constexpr Layout fp16_layout{10, -14, 15};
constexpr Layout bf16_layout{7, -126, 127};

// The value of a half, by the definition of the format.
double value_of(Half half, Layout layout) {
  const int fraction = half & ((1 << layout.fraction_bits) - 1);
  const int exponent = (half & 0x7fff) >> layout.fraction_bits;
  const int top = layout.largest_exponent - layout.smallest_exponent + 2;
  double value = 0.0;
  if (exponent == top) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, layout.smallest_exponent - layout.fraction_bits);
  } else {
    value = std::ldexp((1 << layout.fraction_bits) + fraction,
                       layout.smallest_exponent + exponent - 1 - layout.fraction_bits);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

// The nearest half to a number, ties to even, from doubles alone.
Half nearest(double value, Layout layout) {
  const int top = layout.largest_exponent - layout.smallest_exponent + 2;
  const auto infinity = static_cast<Half>(top << layout.fraction_bits);
  if (std::isnan(value)) return static_cast<Half>(infinity | (1 << (layout.fraction_bits - 1)));
  const auto sign = static_cast<Half>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  const int exponent = magnitude == 0.0 ? layout.smallest_exponent
                                        : std::max(std::ilogb(magnitude), layout.smallest_exponent);
  const double places = std::nearbyint(std::ldexp(magnitude, layout.fraction_bits - exponent));
  // Adding the integer to the exponent's field carries as it should.
  const int biased = exponent - layout.smallest_exponent;
  const int bits = (biased << layout.fraction_bits) + static_cast<int>(places);
  return static_cast<Half>(sign | std::min<int>(bits, infinity));
}

const KernelForm& portable() {
  return *kernel_form_named("portable");
}

std::vector<Half> all_halves() {
  std::vector<Half> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<Half>(i);
  return halves;
}

// Floats at which rounding to 16 bits could go wrong: every half value, the ties between
// neighbours, what stands just beside them, and random bits of every exponent and sign.
std::vector<float> hard_floats() {
  std::vector<float> floats;
  for (const Layout layout : {fp16_layout, bf16_layout}) {
    for (const Half half : all_halves()) {
      const double value = value_of(half, layout);
      if (std::isnan(value)) continue;
      const double next = value_of(static_cast<Half>(half + 1), layout);
      const auto tie = static_cast<float>((value + next) / 2);
      for (const float number : {static_cast<float>(value), tie}) {
        floats.insert(floats.end(), {number, std::nextafter(number, INFINITY),
                                     std::nextafter(number, -INFINITY)});
      }
    }
  }
  std::mt19937 random(20181028);
  for (int i = 0; i < 1'000'000; ++i)
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const std::uint32_t nan :
       {0x7f800001U, 0xff800001U, 0x7fc12345U, 0xffffffffU, 0x7fffffffU}) {
    floats.push_back(std::bit_cast<float>(nan));
  }
  return floats;
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST(PortableKernels, CastHalvesToFloatsByDefinition) {
  const std::vector<Half> halves = all_halves();
  std::vector<float> floats(halves.size());
  const auto check = [&](Layout layout) {
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const double expected = value_of(halves[i], layout);
      const std::uint32_t wanted =
          std::isnan(expected) ? 0x7fc00000U : bits(static_cast<float>(expected));
      ASSERT_EQ(bits(floats[i]), wanted) << "half " << halves[i];
    }
  };
  portable().fp32_from_fp16(floats.data(), halves.data(), halves.size());
  check(fp16_layout);
  portable().fp32_from_bf16(floats.data(), halves.data(), halves.size());
  check(bf16_layout);
}

TEST(PortableKernels, CastFloatsToTheNearestHalf) {
  const std::vector<float> floats = hard_floats();
  std::vector<Half> halves(floats.size());
  portable().fp16_from_fp32(halves.data(), floats.data(), floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i], nearest(floats[i], fp16_layout)) << floats[i];
  }
  portable().bf16_from_fp32(halves.data(), floats.data(), floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i], nearest(floats[i], bf16_layout)) << floats[i];
  }
}

// The exact sum of two FP16 fits a double, so this also holds the sum in FP32, which rounds twice,
// against one rounding: the licence of AVX-512 FP16's own addition.
TEST(PortableKernels, RoundSumsOfFp16AsIfOnce) {
  std::mt19937 random(20181028);
  std::vector<Half> a(1 << 16);
  for (int round = 0; round < 32; ++round) {
    const std::vector<Half> b = all_halves();
    for (Half& half : a) half = static_cast<Half>(random());
    std::vector<Half> sums = a;
    portable().add_fp16(sums.data(), b.data(), sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double exact = value_of(a[i], fp16_layout) + value_of(b[i], fp16_layout);
      ASSERT_EQ(sums[i], nearest(exact, fp16_layout)) << a[i] << " + " << b[i];
    }
  }
}

TEST(PortableKernels, SumBf16InFp32AndRound) {
  std::mt19937 random(20181028);
  const std::vector<Half> b = all_halves();
  std::vector<Half> a(b.size());
  for (Half& half : a) half = static_cast<Half>(random());
  std::vector<Half> sums = a;
  portable().add_bf16(sums.data(), b.data(), sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float sum = static_cast<float>(value_of(a[i], bf16_layout)) +
                      static_cast<float>(value_of(b[i], bf16_layout));
    ASSERT_EQ(sums[i], nearest(sum, bf16_layout)) << a[i] << " + " << b[i];
  }
}

TEST(PortableKernels, SumSquaresInDouble) {
  const std::vector<float> three{3.0F, -4.0F, 0x1p100F};
  EXPECT_EQ(portable().sum_of_squares(three.data(), 2), 25.0);
  EXPECT_EQ(portable().sum_of_squares(three.data(), 3), 0x1p200);
  EXPECT_EQ(portable().sum_of_squares(nullptr, 0), 0.0);
  std::vector<float> many(1000, 0.5F);
  EXPECT_EQ(portable().sum_of_squares(many.data(), many.size()), 250.0);
  many[7] = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(same(portable().sum_of_squares(many.data(), many.size()), std::nan("")));
}

// Bytes at a given misalignment, with a guard on both sides that shows writes outside.
class Room {
 public:
  Room(std::size_t bytes, std::size_t misalignment)
      : memory_(bytes + misalignment + 3 * 64, guard), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = memory_.data() + (64 - address % 64) % 64 + 64 + misalignment % 64;
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  [[nodiscard]] unsigned char* data() { return begin_; }
  void fill(const void* from) {
    if (bytes_ > 0) std::memcpy(begin_, from, bytes_);
  }
  [[nodiscard]] bool operator==(const Room& other) const {
    return bytes_ == 0 || std::memcmp(begin_, other.begin_, bytes_) == 0;
  }
  [[nodiscard]] bool guards_hold() const {
    const auto holds = [](const unsigned char* from, const unsigned char* to) {
      for (; from != to; ++from) {
        if (*from != guard) return false;
      }
      return true;
    };
    return holds(memory_.data(), begin_) && holds(begin_ + bytes_, memory_.data() + memory_.size());
  }

 private:
  static constexpr unsigned char guard = 0xa5;
  std::vector<unsigned char> memory_;
  std::size_t bytes_;
  unsigned char* begin_ = nullptr;
};

using Binary = void (*KernelForm::*)(void*, const void*, std::size_t);
struct Kernel {
  const char* name;
  Binary function;
  std::size_t target_bytes;
  std::size_t source_bytes;
};
constexpr std::array<Kernel, 9> kernels{{
    {"fp16_from_fp32", &KernelForm::fp16_from_fp32, 2, 4},
    {"bf16_from_fp32", &KernelForm::bf16_from_fp32, 2, 4},
    {"fp32_from_fp16", &KernelForm::fp32_from_fp16, 4, 2},
    {"fp32_from_bf16", &KernelForm::fp32_from_bf16, 4, 2},
    {"add_fp32", &KernelForm::add_fp32, 4, 4},
    {"add_fp16", &KernelForm::add_fp16, 2, 2},
    {"add_bf16", &KernelForm::add_bf16, 2, 2},
    {"add_fp16_to_fp32", &KernelForm::add_fp16_to_fp32, 4, 2},
    {"add_bf16_to_fp32", &KernelForm::add_bf16_to_fp32, 4, 2},
}};

class KernelForms : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    form_ = kernel_form_named(GetParam());
    if (form_ == nullptr)
      GTEST_SKIP() << "this CPU or build has no " << GetParam() << ", or " << kernel_limit_variable
                   << " forbids it";
  }

  // Runs a kernel in this form and in the portable one on the same bytes.
  void compare(const Kernel& kernel, const void* target, const void* source, std::size_t count,
               std::size_t target_misalignment, std::size_t source_misalignment) {
    Room expected(count * kernel.target_bytes, target_misalignment);
    Room actual(count * kernel.target_bytes, target_misalignment);
    Room from(count * kernel.source_bytes, source_misalignment);
    expected.fill(target);
    actual.fill(target);
    from.fill(source);
    (portable().*kernel.function)(expected.data(), from.data(), count);
    (form_->*kernel.function)(actual.data(), from.data(), count);
    ASSERT_TRUE(actual == expected) << kernel.name << " of " << count << ", misaligned by "
                                    << target_misalignment << " and " << source_misalignment;
    ASSERT_TRUE(actual.guards_hold()) << kernel.name << " of " << count;
    ASSERT_TRUE(expected.guards_hold()) << kernel.name << " of " << count;
  }

  const KernelForm* form_ = nullptr;
};

TEST_P(KernelForms, GiveThePortableBitsForHardNumbers) {
  const std::vector<float> floats = hard_floats();
  std::vector<float> shuffled = floats;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(7));
  std::vector<Half> halves = all_halves();
  std::mt19937 random(11);
  while (halves.size() < floats.size()) halves.push_back(static_cast<Half>(random()));
  std::vector<Half> mixed = halves;
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937(13));
  for (const Kernel& kernel : kernels) {
    const void* target = kernel.target_bytes == 4 ? static_cast<const void*>(shuffled.data())
                                                  : static_cast<const void*>(mixed.data());
    const void* source = kernel.source_bytes == 4 ? static_cast<const void*>(floats.data())
                                                  : static_cast<const void*>(halves.data());
    compare(kernel, target, source, floats.size(), 0, 0);
  }
}

TEST_P(KernelForms, TakeAnyLengthAndAlignment) {
  std::mt19937 random(17);
  std::vector<std::uint32_t> target(256);
  std::vector<std::uint32_t> source(256);
  for (auto* words : {&target, &source}) {
    for (std::uint32_t& word : *words) word = static_cast<std::uint32_t>(random());
  }
  for (const Kernel& kernel : kernels) {
    for (std::size_t count = 0; count <= 200; ++count) {
      compare(kernel, target.data(), source.data(), count, count % 64, (count * 7 + 5) % 64);
    }
    for (std::size_t misalignment = 0; misalignment < 64; ++misalignment) {
      for (const std::size_t count : {0, 1, 15, 17, 64, 131, 200}) {
        compare(kernel, target.data(), source.data(), count, misalignment, 0);
        compare(kernel, target.data(), source.data(), count, 0, misalignment);
        compare(kernel, target.data(), source.data(), count, misalignment, misalignment);
      }
    }
  }
}

TEST_P(KernelForms, ScaleAsThePortableForm) {
  const std::vector<float> floats = hard_floats();
  for (const float factor :
       {0.0F, -1.0F, 1.0F / 3.0F, 0x1p-140F, 0x1p120F, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> expected = floats;
    std::vector<float> actual = floats;
    portable().scale(expected.data(), factor, expected.size());
    form_->scale(actual.data(), factor, actual.size());
    ASSERT_EQ(std::memcmp(expected.data(), actual.data(), 4 * floats.size()), 0) << factor;
  }
  for (std::size_t count = 0; count <= 200; ++count) {
    Room expected(4 * count, count % 64);
    Room actual(4 * count, count % 64);
    expected.fill(floats.data() + 1000);
    actual.fill(floats.data() + 1000);
    portable().scale(expected.data(), 0.1F, count);
    form_->scale(actual.data(), 0.1F, count);
    ASSERT_TRUE(actual == expected) << count;
    ASSERT_TRUE(actual.guards_hold()) << count;
  }
}

TEST_P(KernelForms, SumSquaresAsThePortableForm) {
  std::mt19937 random(19);
  std::uniform_real_distribution<float> distribution(-10.0F, 10.0F);
  std::vector<float> values(100'003);
  for (float& value : values) value = distribution(random);
  for (std::size_t count = 0; count <= 200; ++count) {
    ASSERT_TRUE(same(form_->sum_of_squares(values.data() + count, count),
                     portable().sum_of_squares(values.data() + count, count)))
        << count;
  }
  ASSERT_TRUE(same(form_->sum_of_squares(values.data(), values.size()),
                   portable().sum_of_squares(values.data(), values.size())));
  for (const float special : {NAN, -INFINITY, 0x1p-149F, std::numeric_limits<float>::max()}) {
    values[5003] = special;
    ASSERT_TRUE(same(form_->sum_of_squares(values.data(), values.size()),
                     portable().sum_of_squares(values.data(), values.size())))
        << special;
  }
}

TEST_P(KernelForms, SeeEachNumberThatIsNotFinite) {
  for (std::size_t count = 0; count <= 200; ++count) {
    std::vector<float> values(count, std::numeric_limits<float>::max());
    ASSERT_TRUE(form_->all_finite(values.data(), count)) << count;
    for (std::size_t i = 0; i < count; ++i) {
      for (const float special :
           {NAN, -NAN, INFINITY, -INFINITY, std::numeric_limits<float>::signaling_NaN()}) {
        values[i] = special;
        ASSERT_FALSE(form_->all_finite(values.data(), count)) << special << " at " << i;
      }
      values[i] = 0x1p-149F;
    }
    ASSERT_TRUE(form_->all_finite(values.data(), count)) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelForms,
                         testing::Values("avx512-fp16", "avx512", "avx2-f16c", "portable"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Kernels, RunTheBestForm) {
  EXPECT_EQ(kernel_form(), kernel_forms().front()->name);
  EXPECT_STREQ(kernel_forms().back()->name, "portable");
  if (const char* limit = std::getenv(kernel_limit_variable); limit != nullptr) {
    EXPECT_GE(std::ranges::find(all_kernel_forms(), kernel_form()),
              std::ranges::find(all_kernel_forms(), limit));
  }
  EXPECT_EQ(kernel_form_named("abacus"), nullptr);
}

// Every form is among those that are tested above.
TEST(Kernels, AreOfTheFormsThatHaveNames) {
  const auto names = all_kernel_forms();
  EXPECT_EQ((std::vector<std::string_view>(names.begin(), names.end())),
            (std::vector<std::string_view>{"avx512-fp16", "avx512", "avx2-f16c", "portable"}));
  for (const KernelForm* form : kernel_forms())
    EXPECT_NE(std::ranges::find(names, form->name), names.end()) << form->name;
}

// Prints which form a process runs whose environment sets the limit, and ends it. The limit is read
// once in a process.
void say_form_under(const std::string& limit) {
  ::setenv(kernel_limit_variable, limit.c_str(), 1);
  try {
    std::fprintf(stderr, "runs %s;", std::string(kernel_form()).c_str());
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s;", error.what());
  }
  std::_Exit(0);
}

TEST(KernelsDeathTest, RunNoBetterFormThanTheEnvironmentNames) {
  // Starts a process that does what stands here up to the statement: nothing that uses a kernel.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::string allowed;
  for (const std::string_view form : std::views::reverse(all_kernel_forms())) {
    const std::string name(form);
    allowed += (allowed.empty() ? "" : "|") + name;
    EXPECT_EXIT(say_form_under(name), testing::ExitedWithCode(0), "^runs (" + allowed + ");");
  }
  EXPECT_EXIT(
      say_form_under("abacus"), testing::ExitedWithCode(0),
      "unknown form of kernels in PACELINE_MAX_KERNELS 'abacus'; known: avx512-fp16, avx512, "
      "avx2-f16c, portable;");
}

TEST(Kernels, KeepTheBitsOfFp32InCopies) {
  const std::vector<float> source{1.5F, std::bit_cast<float>(0xff812345U), -0.0F};
  std::vector<float> copy(3);
  cast_from_fp32(source, NumberType::fp32, copy.data());
  EXPECT_EQ(std::memcmp(copy.data(), source.data(), 12), 0);
  cast_to_fp32(source.data(), NumberType::fp32, copy);
  EXPECT_EQ(std::memcmp(copy.data(), source.data(), 12), 0);
}

TEST(Kernels, GoToTheKernelOfTheType) {
  const std::vector<float> values{1.0F, 2.5F, -65536.0F};
  std::array<Half, 3> halves{};
  std::array<float, 3> floats{};
  cast_from_fp32(values, NumberType::fp16, halves.data());
  EXPECT_EQ(halves, (std::array<Half, 3>{0x3c00, 0x4100, 0xfc00}));
  add(NumberType::fp16, halves.data(), std::array<Half, 3>{0x3c00, 0x3c00, 0x7c00}.data(), 3);
  EXPECT_EQ(halves, (std::array<Half, 3>{0x4000, 0x4300, 0x7e00}));
  cast_from_fp32(values, NumberType::bf16, halves.data());
  EXPECT_EQ(halves, (std::array<Half, 3>{0x3f80, 0x4020, 0xc780}));
  cast_to_fp32(halves.data(), NumberType::bf16, floats);
  EXPECT_EQ(floats, (std::array<float, 3>{1.0F, 2.5F, -65536.0F}));
  add(NumberType::bf16, halves.data(), halves.data(), 3);
  add_to_fp32(floats, halves.data(), NumberType::bf16);
  EXPECT_EQ(floats, (std::array<float, 3>{3.0F, 7.5F, -196608.0F}));
  add(NumberType::fp32, floats.data(), values.data(), 3);
  add_to_fp32(floats, values.data(), NumberType::fp32);
  EXPECT_EQ(floats, (std::array<float, 3>{5.0F, 12.5F, -327680.0F}));
  scale(floats, 0.5F);
  EXPECT_EQ(floats, (std::array<float, 3>{2.5F, 6.25F, -163840.0F}));
  EXPECT_TRUE(all_finite(floats));
  EXPECT_EQ(sum_of_squares(std::span(floats).first(1)), 6.25);
}

}  // namespace
}  // namespace paceline::runtime
