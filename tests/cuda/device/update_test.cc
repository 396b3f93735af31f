// The update of all parameters on a CUDA device has the bits of the CPU's, with LARS, too: its norms
// have the CPU's order of additions.
#include <deque>

#include "runtime/device/copies.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/device_tables.h"
#include "runtime/device/cuda/start.h"
#include "runtime/tensor/optimizer_kernels.h"
#include "tests/cuda/device/rig.h"

namespace paceline::test {
namespace {

using runtime::Kernel;
using runtime::UpdatedTensor;
using runtime::UpdateParameters;
using runtime::UpdateRule;
using runtime::UpdateTable;
using runtime::WorkingCopies;
using runtime::WorkingCopy;

struct Setting {
  std::string name;
  bool lars = false;
  UpdateRule rule;
};

UpdateTable any_table(Random& random, bool lars) {
  constexpr std::size_t sizes[] = {1,    2,    3,    10,    33,    63,    147,   784,
                                   4095, 4096, 4097, 16384, 16385, 18432, 36864, 40000};
  std::vector<UpdatedTensor> tensors;
  std::size_t offset = random.below(4);
  for (std::uint64_t i = 1 + random.below(10); i > 0; --i) {
    const std::size_t elements = sizes[random.below(std::size(sizes))];
    tensors.push_back({.offset = offset,
                       .elements = elements,
                       .decay = random.below(2) == 0 ? 0 : 1e-2F,
                       .has_own_rate = random.below(3) > 0});
    offset += elements + random.below(3);
  }
  return {tensors, lars, 1};
}

std::size_t any_divisor(Random& random, std::size_t n, std::initializer_list<std::size_t> among) {
  std::vector<std::size_t> divisors = {1};
  for (const std::size_t d : among)
    if (n % d == 0) divisors.push_back(d);
  return divisors[random.below(divisors.size())];
}

// Copies of the tensors in any type and order, one behind the other; begins says where, in bytes.
struct CopyPlaces {
  std::vector<WorkingCopy> copies;
  std::vector<std::size_t> begins;
  std::size_t bytes = 0;

  // The table of copies in an array of this many bytes.
  [[nodiscard]] WorkingCopies in(const ArrayView& array) const {
    std::vector<WorkingCopy> placed = copies;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      placed[i].target.data = array.data + begins[i];
      placed[i].target.kind = array.kind;
    }
    return WorkingCopies(placed);
  }
};

CopyPlaces any_places(Random& random, const UpdateTable& table) {
  constexpr NumberType types[] = {NumberType::fp16, NumberType::bf16, NumberType::fp32};
  CopyPlaces all;
  for (const UpdatedTensor& tensor : table.tensors()) {
    WorkingCopy copy;
    copy.offset = tensor.offset;
    copy.pixels =
        any_divisor(random, tensor.elements, {2, 3, 4, 9, 25, 36, 49, 121, 784, 2000, 5000, 20000});
    const std::size_t rows = tensor.elements / copy.pixels;
    copy.channels = any_divisor(random, rows, {2, 3, 8, 16, 64, 128, rows});
    copy.outputs = rows / copy.channels;
    copy.stored_channels =
        copy.channels + (random.below(3) > 0 ? 0 : std::size_t{1} << random.below(4));
    copy.target.type = types[random.below(3)];
    copy.target.elements = copy.outputs * copy.pixels * copy.stored_channels;
    // Half of the tensors are aligned to 16 bytes, as those of a network are; the others are not.
    all.bytes += random.below(2) == 0 ? (16 - all.bytes % 16) % 16 : 4 * random.below(5);
    all.begins.push_back(all.bytes);
    all.bytes += (copy.target.bytes() + 3) / 4 * 4;
    all.copies.push_back(copy);
  }
  return all;
}

// Arrays of the table's length with finite numbers, from `first` on.
Operand plain_operand(Random& random, std::size_t elements, std::size_t first, float spread) {
  Operand operand{.first = first, .elements = elements, .bytes = Bytes(4 * (elements + 8))};
  const std::vector<float> values = plain_numbers(random, elements + 8, spread);
  std::memcpy(operand.bytes.data(), values.data(), operand.bytes.size());
  return operand;
}

class CudaUpdate : public testing::TestWithParam<Setting> {};

TEST_P(CudaUpdate, HasTheBitsOfTheCpu) {
  const Setting& setting = GetParam();
  in_every_order(1, [&](std::uint64_t seed) {
    CudaDevice device;
    const auto stream = device.make_stream();
    Random random(seed);
    for (int i = 0; i < 12 && !testing::Test::HasFailure(); ++i) {
      const UpdateTable table = any_table(random, setting.lars);
      const std::size_t n = table.elements();
      const auto first = [&] { return i % 3 == 0 ? random.below(5) : 0; };
      std::vector<Operand> operands = {
          plain_operand(random, n, first(), 1), plain_operand(random, n, first(), 1000),
          plain_operand(random, n, first(), 0.1F), plain_operand(random, n, first(), 1)};
      for (std::size_t k = 0; k < n + 8; ++k) operands[3].bytes[4 * k + 3] &= std::byte{0x7f};
      const bool has_copies = i % 2 == 1;
      const CopyPlaces places = any_places(random, table);
      operands.push_back({.elements = places.bytes / 4,
                          .bytes = any_numbers(random, NumberType::fp32, places.bytes / 4)});
      std::deque<WorkingCopies> copies;
      expect_the_bits_of_the_cpu(
          device, *stream, operands,
          [&](const std::vector<ArrayView>& v, std::uint32_t*) -> Kernel {
            return UpdateParameters{
                .table = &table,
                .rule = setting.rule,
                .weights = v[0],
                .gradients = v[1],
                .momentum = v[2],
                .mean_square = v[3],
                .copies = has_copies ? &copies.emplace_back(places.in(v[4])) : nullptr};
          },
          fmt::format("{} elements, update {}", n, i));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, CudaUpdate,
                         testing::Values(Setting{.name = "momentum",
                                                 .rule = {.gradient_factor = 0.3F,
                                                          .learning_rate = 0.1,
                                                          .momentum = 0.9F}},
                                         Setting{.name = "nesterov",
                                                 .rule = {.gradient_factor = 0x1p-10F,
                                                          .learning_rate = 0.7,
                                                          .momentum = 0.81F,
                                                          .nesterov = true,
                                                          .look_ahead = 0.9F}},
                                         Setting{.name = "lars",
                                                 .lars = true,
                                                 .rule = {.gradient_factor = -0.3F,
                                                          .learning_rate = 3,
                                                          .momentum = 0.9F,
                                                          .trust_coefficient = 1e-3,
                                                          .lars_epsilon = 1e-9}},
                                         Setting{.name = "rmsprop",
                                                 .rule = {.gradient_factor = 0.01F,
                                                          .learning_rate = 0.1,
                                                          .momentum = 0.9F,
                                                          .rmsprop = true,
                                                          .sgd_rate = 0.05F,
                                                          .rmsprop_rate = 3e-4F,
                                                          .square_decay = 0.99F,
                                                          .rmsprop_epsilon = 1e-8F}}),
                         [](const auto& p) { return p.param.name; });

// Rates are rounded to FP32, which hides the order in which norms are added. So the sums themselves
// are held against the CPU's.
TEST(CudaLars, AddsTheSquaresInTheOrderOfTheCpu) {
  in_every_order(1, [](std::uint64_t seed) {
    CudaDevice device;
    const auto stream = device.make_stream();
    Random random(seed);
    const std::size_t n = 40'000;
    const UpdateTable table({{.offset = 0, .elements = 7, .has_own_rate = true},
                             {.offset = 7, .elements = 100},
                             {.offset = 107, .elements = n - 107, .has_own_rate = true}},
                            true, 1);
    const std::vector<float> weights = plain_numbers(random, n);
    const std::vector<float> gradients = plain_numbers(random, n, 1000);
    const Memory arrays = device.allocate(3 * n * sizeof(float), MemoryKind::device);
    const auto array = [&](std::size_t i) { return arrays.array(NumberType::fp32).part(i * n, n); };
    runtime::copy_from_host(device, *stream, weights, array(0));
    runtime::copy_from_host(device, *stream, gradients, array(1));
    runtime::copy_from_host(device, *stream, std::vector<float>(n), array(2));
    runtime::cuda::DeviceTables tables(device, 0);
    const runtime::cuda::UpdateTables& on_device = tables.of(table);
    const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(array(i).data); };
    runtime::cuda::check(runtime::cuda::start_update(
                             dynamic_cast<runtime::cuda::CudaStream&>(*stream).handle(), on_device,
                             {.learning_rate = 1, .trust_coefficient = 1e-3},
                             {.weights = floats(0), .gradients = floats(1), .momentum = floats(2)}),
                         "start an update");
    constexpr std::size_t first[] = {0, 107, 107 + 16384, 107 + 32768};
    constexpr std::size_t count[] = {7, 16384, 16384, n - 107 - 32768};
    ASSERT_EQ(on_device.block_count, std::size(first));
    const Memory sums =
        device.allocate(std::size(first) * sizeof(runtime::cuda::BlockSums), MemoryKind::pinned);
    const auto as_floats = [&](const void* p, MemoryKind kind) {
      return ArrayView{static_cast<std::byte*>(const_cast<void*>(p)), NumberType::fp32,
                       sums.size() / sizeof(float), kind};
    };
    stream->start(runtime::Cast{as_floats(on_device.sums, MemoryKind::device),
                                as_floats(sums.data(), MemoryKind::pinned)});
    runtime::wait_for(stream->record(), Seconds{60}, "read the sums");
    for (std::size_t i = 0; i < std::size(first); ++i) {
      runtime::cuda::BlockSums block;
      std::memcpy(&block, sums.data() + i * sizeof block, sizeof block);
      const runtime::SquareSums expected =
          runtime::square_sums(&weights[first[i]], &gradients[first[i]], count[i]);
      EXPECT_EQ(block.weights, expected.weights) << i;
      EXPECT_EQ(block.gradients, expected.gradients) << i;
    }
  });
}

// A tensor whose weights or gradients are zero has the rate of all.
TEST(CudaLars, TakesTheGlobalRateWhereANormIsZero) {
  in_every_order(1, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    const UpdateTable table({{.offset = 0, .elements = 4, .has_own_rate = true},
                             {.offset = 4, .elements = 4, .decay = 0.25F, .has_own_rate = true}},
                            true, 1);
    const float weights[] = {0, 0, 0, 0, 1, 1, 1, 1};
    const float gradients[] = {1, 2, 3, 4, 0, 0, 0, 0};
    std::vector<Operand> operands(3, Operand{.elements = 8, .bytes = Bytes(32)});
    std::memcpy(operands[0].bytes.data(), weights, 32);
    std::memcpy(operands[1].bytes.data(), gradients, 32);
    expect_the_bits_of_the_cpu(
        device, *stream, operands,
        [&](const std::vector<ArrayView>& v, std::uint32_t*) -> Kernel {
          return UpdateParameters{.table = &table,
                                  .rule = {.learning_rate = 0.5, .trust_coefficient = 1e-3},
                                  .weights = v[0],
                                  .gradients = v[1],
                                  .momentum = v[2],
                                  .mean_square = {},
                                  .copies = nullptr};
        },
        "two tensors");
  });
}

// The tables of a device are those of the tables that live, whatever their addresses.
TEST(CudaUpdate, KnowsATableFromAnotherAtItsPlace) {
  in_every_order(1, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    for (std::size_t n = 1; n < 6; ++n) {
      const UpdateTable table({{.offset = 0, .elements = n}}, false, 1);
      std::vector<Operand> operands(3, Operand{.elements = n, .bytes = Bytes(4 * n)});
      for (std::byte& byte : operands[1].bytes) byte = std::byte{0x3f};
      expect_the_bits_of_the_cpu(
          device, *stream, operands,
          [&](const std::vector<ArrayView>& v, std::uint32_t*) -> Kernel {
            return UpdateParameters{.table = &table,
                                    .rule = {.learning_rate = 0.5},
                                    .weights = v[0],
                                    .gradients = v[1],
                                    .momentum = v[2],
                                    .mean_square = {},
                                    .copies = nullptr};
          },
          fmt::format("{} elements", n));
    }
  });
}

}  // namespace
}  // namespace paceline::test
