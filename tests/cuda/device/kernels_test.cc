// The kernels of a CUDA device have the bits of the CPU's, whatever the numbers, the sizes and the
// alignments, and touch nothing else.
#include "tests/cuda/device/rig.h"

namespace paceline::test {
namespace {

using runtime::Add;
using runtime::Cast;
using runtime::CastMany;
using runtime::CastTable;
using runtime::Fill;
using runtime::FindNotFinite;
using runtime::Kernel;
using runtime::Unscale;
using Views = std::vector<ArrayView>;

constexpr NumberType types[] = {NumberType::fp32, NumberType::fp16, NumberType::bf16};
constexpr std::size_t most_skew = 17;

std::size_t any_size(Random& random) {
  constexpr std::size_t sizes[] = {0, 1, 3, 7, 8, 9, 31, 32, 33, 64, 97, 1009, 4099};
  return sizes[random.below(std::size(sizes))];
}

// An operand of any numbers at any alignment.
Operand any_operand(Random& random, NumberType type, std::size_t elements) {
  return {.type = type,
          .first = random.below(2) == 0 ? 8 * random.below(2) : random.below(most_skew),
          .elements = elements,
          .bytes = any_numbers(random, type, elements + 2 * most_skew)};
}

std::string described(const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& o : operands)
    text += fmt::format("{}[{} from {}] ", models::name(o.type), o.elements, o.first);
  return text;
}

template <class Make>
void expect_the_bits(Device& device, Stream& stream, const std::vector<Operand>& operands,
                     const Make& make) {
  expect_the_bits_of_the_cpu(device, stream, operands, make, described(operands));
}

// check(device, stream, random), often, with other numbers each time.
template <class Check>
void often(int times, const Check& check) {
  in_every_order(1, [&](std::uint64_t seed) {
    CudaDevice device;
    const auto stream = device.make_stream();
    Random random(seed);
    for (int i = 0; i < times && !testing::Test::HasFailure(); ++i) check(device, *stream, random);
  });
}

TEST(CudaKernels, CastsAndCopies) {
  often(60, [](Device& device, Stream& stream, Random& random) {
    for (const NumberType source : types) {
      for (const NumberType target : types) {
        if (source != target && source != NumberType::fp32 && target != NumberType::fp32) continue;
        const std::size_t n = any_size(random);
        expect_the_bits(device, stream,
                        {any_operand(random, source, n), any_operand(random, target, n)},
                        [](const Views& v, std::uint32_t*) -> Kernel {
                          return Cast{v[0], v[1]};
                        });
      }
    }
  });
}

// All numbers of 16 bits; and for each the FP32 numbers at which rounding may go one way or the
// other: itself, the middle between it and the next, and the neighbours of both.
TEST(CudaKernels, CastEveryHalfAndEveryTie) {
  often(1, [](Device& device, Stream& stream, Random& /*random*/) {
    for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
      Operand all{.type = type, .elements = 65536, .bytes = Bytes(2 * 65536)};
      for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto half = static_cast<std::uint16_t>(i);
        std::memcpy(&all.bytes[2 * i], &half, 2);
      }
      const Operand wide{.elements = 65536, .bytes = Bytes(4 * 65536)};
      expect_the_bits(device, stream, {all, wide}, [](const Views& v, std::uint32_t*) -> Kernel {
        return Cast{v[0], v[1]};
      });

      std::vector<float> values(65536);
      runtime::cast_to_fp32(all.bytes.data(), type, values);
      // Halves of the last place of the type, as bits of FP32; of subnormals of FP16 it is the sum.
      std::vector<float> near;
      for (std::uint32_t i = 0; i < 65535; ++i) {
        const double middle =
            (static_cast<double>(values[i]) + static_cast<double>(values[i + 1])) / 2;
        for (const float v : {values[i], static_cast<float>(middle)}) {
          near.push_back(v);
          near.push_back(std::nextafter(v, 1e38F));
          near.push_back(std::nextafter(v, -1e38F));
        }
      }
      Operand source{.elements = near.size(), .bytes = Bytes(4 * near.size())};
      std::memcpy(source.bytes.data(), near.data(), source.bytes.size());
      const Operand target{.type = type, .elements = near.size(), .bytes = Bytes(2 * near.size())};
      expect_the_bits(device, stream, {source, target},
                      [](const Views& v, std::uint32_t*) -> Kernel {
                        return Cast{v[0], v[1]};
                      });
    }
  });
}

TEST(CudaKernels, Add) {
  often(60, [](Device& device, Stream& stream, Random& random) {
    for (const NumberType source : types) {
      for (const NumberType target : {source, NumberType::fp32}) {
        const std::size_t n = any_size(random);
        expect_the_bits(device, stream,
                        {any_operand(random, source, n), any_operand(random, target, n)},
                        [](const Views& v, std::uint32_t*) -> Kernel {
                          return Add{v[0], v[1]};
                        });
      }
    }
  });
}

TEST(CudaKernels, Fill) {
  often(40, [](Device& device, Stream& stream, Random& random) {
    const std::size_t n = any_size(random);
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.below(1UL << 32)));
    expect_the_bits(device, stream, {any_operand(random, NumberType::fp32, n)},
                    [&](const Views& v, std::uint32_t*) -> Kernel {
                      return Fill{v[0], value};
                    });
  });
}

// One number among finite ones, at any place.
Operand with_one(Random& random, std::size_t n, float one) {
  Operand operand = any_operand(random, NumberType::fp32, n);
  const std::vector<float> plain = plain_numbers(random, operand.bytes.size() / 4);
  std::memcpy(operand.bytes.data(), plain.data(), operand.bytes.size());
  const std::size_t at = random.below(n);
  std::memcpy(&operand.bytes[4 * (operand.first + at)], &one, 4);
  // Around the array are numbers that are not finite, which are not to be found.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (operand.first > 0) std::memcpy(&operand.bytes[4 * (operand.first - 1)], &nan, 4);
  std::memcpy(&operand.bytes[4 * (operand.first + n)], &nan, 4);
  return operand;
}

TEST(CudaKernels, FindWhatIsNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  often(100, [](Device& device, Stream& stream, Random& random) {
    const float ones[] = {0, -infinity, infinity, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::max()};
    const std::size_t n = any_size(random) + 1;
    expect_the_bits(device, stream, {with_one(random, n, ones[random.below(5)])},
                    [](const Views& v, std::uint32_t* found) -> Kernel {
                      return FindNotFinite{v[0], found};
                    });
  });
}

TEST(CudaKernels, Unscale) {
  often(60, [](Device& device, Stream& stream, Random& random) {
    const float factor = random.below(2) == 0 ? 1.0F : 0x1p-10F;
    for (const NumberType source : types) {
      const std::size_t n = any_size(random);
      expect_the_bits(device, stream,
                      {any_operand(random, source, n), any_operand(random, NumberType::fp32, n)},
                      [&](const Views& v, std::uint32_t* found) -> Kernel {
                        return Unscale{v[0], v[1], factor, found};
                      });
    }
    // In place, among finite numbers: found where a product overflows.
    const std::size_t n = any_size(random) + 1;
    const float one = random.below(2) == 0 ? 3e38F : 1;
    expect_the_bits(device, stream, {with_one(random, n, one)},
                    [](const Views& v, std::uint32_t* found) -> Kernel {
                      return Unscale{v[0], v[0], 2, found};
                    });
  });
}

TEST(CudaKernels, CastMany) {
  often(40, [](Device& device, Stream& stream, Random& random) {
    for (const NumberType source : types) {
      for (const NumberType target : types) {
        if (source != target && source != NumberType::fp32 && target != NumberType::fp32) continue;
        // Tensors that stand anywhere, or all in step, of one tile and more, packed one behind the
        // other, the last the first.
        const bool in_step = random.below(2) == 0;
        const std::size_t step = random.below(8);
        const auto tensor = [&](NumberType type, std::size_t count) {
          Operand operand = any_operand(random, type, in_step ? (count + 7) / 8 * 8 : count);
          if (in_step) operand.first = step;
          return operand;
        };
        std::vector<Operand> operands;
        std::size_t elements = 0;
        for (std::uint64_t i = random.below(6); i > 0; --i) {
          const std::size_t count = random.below(4) == 0 ? 9001 : any_size(random);
          operands.push_back(tensor(source, count));
          elements += operands.back().elements;
        }
        operands.push_back(tensor(target, elements));
        std::vector<CastTable> tables;
        tables.reserve(2);
        expect_the_bits(device, stream, operands, [&](const Views& v, std::uint32_t*) -> Kernel {
          std::vector<Cast> casts;
          std::size_t at = elements;
          for (std::size_t i = 0; i + 1 < v.size(); ++i) {
            at -= v[i].elements;
            casts.push_back({v[i], v.back().part(at, v[i].elements)});
          }
          return CastMany{&tables.emplace_back(casts)};
        });
      }
    }
  });
}

// More than one wave of blocks.
TEST(CudaKernels, TakeLargeArrays) {
  often(1, [](Device& device, Stream& stream, Random& random) {
    constexpr std::size_t n = 2'500'003;
    const std::vector<Operand> operands = {any_operand(random, NumberType::fp16, n),
                                           any_operand(random, NumberType::fp32, n)};
    expect_the_bits(device, stream, operands, [](const Views& v, std::uint32_t*) -> Kernel {
      return Add{v[0], v[1]};
    });
  });
}

}  // namespace
}  // namespace paceline::test
