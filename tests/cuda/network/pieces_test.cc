// Kernels of layers have the same bits whether a thread takes eight elements, by accesses of 16 bytes,
// or one: on aligned tensors they do the former, and on tensors that begin one number later the latter.
#include <cuda_runtime_api.h>

#include <deque>

#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/network/cuda/own_kernels.h"
#include "tests/cuda/device/rig.h"

namespace paceline::test {
namespace {

namespace cuda = runtime::cuda;
using cuda::Tensor;

// Memory of a device for the tensors of one kernel, all aligned, or all one number behind.
class Tensors {
 public:
  Tensors(CudaDevice& device, Stream& stream, NumberType type, bool is_aligned)
      : device_(device), stream_(stream), type_(type), is_aligned_(is_aligned) {}

  [[nodiscard]] NumberType type() const { return type_; }
  // A tensor with the numbers that a seed draws.
  Tensor tensor(std::int64_t height, std::int64_t channels) {
    Tensor made{.type = type_, .images = 2, .height = height, .width = 3, .channels = channels};
    made.data = put(any_numbers(random_, type_, static_cast<std::size_t>(made.elements())),
                    runtime::bytes_of(type_));
    return made;
  }
  // Aligned in any case.
  template <class Number>
  Number* table(const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return reinterpret_cast<Number*>(put({bytes.begin(), bytes.end()}, 0));
  }
  template <class Number>
  Number* shifted(const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return reinterpret_cast<Number*>(put({bytes.begin(), bytes.end()}, sizeof(Number)));
  }
  std::vector<float> numbers(std::int64_t count) {
    return plain_numbers(random_, static_cast<std::size_t>(count));
  }
  // Returns the contents of all memory.
  std::vector<Bytes> contents() {
    std::vector<Bytes> all;
    for (const Placed& placed : placed_) {
      const Bytes whole = bytes_of(device_, stream_, placed.memory);
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>(placed.first);
      all.emplace_back(first, first + static_cast<std::ptrdiff_t>(placed.bytes));
    }
    return all;
  }

 private:
  struct Placed {
    Memory memory;
    std::size_t first = 0;
    std::size_t bytes = 0;
  };
  std::byte* put(const Bytes& bytes, std::size_t shift) {
    const std::size_t first = is_aligned_ ? 0 : shift;
    Bytes whole(first + (bytes.size() + 3) / 4 * 4);
    std::ranges::copy(bytes, whole.begin() + static_cast<std::ptrdiff_t>(first));
    placed_.push_back({on_device(device_, stream_, whole), first, bytes.size()});
    return placed_.back().memory.data() + first;
  }

  CudaDevice& device_;
  Stream& stream_;
  NumberType type_;
  bool is_aligned_;
  Random random_{7};
  std::deque<Placed> placed_;
};

struct Case {
  std::string name;
  std::function<cuda::Operation(Tensors&)> make;
};

cuda::Terms terms(Tensors& t, std::int64_t channels, int count) {
  cuda::Terms made{.count = count, .type = t.type()};
  for (int i = 0; i < count; ++i) made.data[i] = t.tensor(5, channels).data;
  return made;
}

cuda::BatchNormVectors vectors(Tensors& t, std::int64_t channels) {
  const auto vector = [&] { return t.table(t.numbers(channels)); };
  cuda::BatchNormVectors made{.gamma = vector(),
                              .beta = vector(),
                              .mean = vector(),
                              .inverse_deviation = vector(),
                              .running_mean = vector()};
  made.running_variance = t.table(std::vector<float>(static_cast<std::size_t>(channels), 0.7F));
  return made;
}

cuda::MeanWindows windows(Tensors& t) {
  using Window = cuda::MeanWindow;
  using Covering = cuda::CoveringWindows;
  return {.rows = t.table<Window>({{0, 2, 2}, {1, 4, 3}, {3, 5, 2}}),
          .columns = t.table<Window>({{0, 1, 2}, {0, 2, 2}, {1, 3, 2}}),
          .over_rows = t.table<Covering>({{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}),
          .over_columns = t.table<Covering>({{0, 2}, {1, 3}, {2, 3}})};
}

std::vector<std::int32_t> places() {
  std::vector<std::int32_t> all(std::size_t{2} * 3 * 3 * 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i * 7 % 9);
  return all;
}

// 3 x 3 windows on 5 x 3 pixels, of which the result has 3 x 3.
constexpr cuda::Windows pool{.kernel_height = 3,
                             .kernel_width = 3,
                             .stride_height = 2,
                             .padding_height = 1,
                             .padding_width = 1};

const Case cases[] = {
    {"sum",
     [](Tensors& t) -> cuda::Operation {
       return cuda::Sum{terms(t, 5, 3), true, t.tensor(5, 5)};
     }},
    {"relu",
     [](Tensors& t) -> cuda::Operation {
       return cuda::ReluDataGradient{t.tensor(5, 5), terms(t, 5, 2), t.tensor(5, 5)};
     }},
    {"dropout",
     [](Tensors& t) -> cuda::Operation {
       return cuda::Dropout{.source = t.tensor(5, 5),
                            .pass = t.table<cuda::PassParameters>({{.dropout_seed = 3}}),
                            .layer = 2,
                            .probability = 0.4,
                            .target = t.tensor(5, 5)};
     }},
    {"copy",
     [](Tensors& t) -> cuda::Operation {
       return cuda::CopyChannels{.source = t.tensor(5, 24),
                                 .from = 8,
                                 .target = t.tensor(5, 40),
                                 .to = 24,
                                 .channels = 16};
     }},
    {"norm",
     [](Tensors& t) -> cuda::Operation {
       return cuda::BatchNormApply{.x = t.tensor(5, 16),
                                   .vectors = vectors(t, 16),
                                   .residual = t.tensor(5, 16).data,
                                   .relu = true,
                                   .y = t.tensor(5, 16)};
     }},
    {"norm by running statistics",
     [](Tensors& t) -> cuda::Operation {
       return cuda::BatchNormApply{.x = t.tensor(5, 16),
                                   .vectors = vectors(t, 16),
                                   .by_running_statistics = true,
                                   .y = t.tensor(5, 16)};
     }},
    {"gradient of norm",
     [](Tensors& t) -> cuda::Operation {
       std::vector<double> sums(32);
       for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = 0.1 * static_cast<double>(i) - 1;
       return cuda::BatchNormDataGradient{
           .from = {t.tensor(5, 16), t.tensor(5, 16), vectors(t, 16), true},
           .sums = t.table(sums),
           .dx = t.tensor(5, 16)};
     }},
    {"max pool",
     [](Tensors& t) -> cuda::Operation {
       return cuda::MaxPoolForward{pool, t.tensor(5, 16), t.tensor(3, 16), t.shifted(places())};
     }},
    {"gradient of max pool",
     [](Tensors& t) -> cuda::Operation {
       return cuda::MaxPoolDataGradient{pool, t.tensor(3, 16), t.shifted(places()),
                                        t.tensor(5, 16)};
     }},
    {"average pool",
     [](Tensors& t) -> cuda::Operation {
       return cuda::AveragePoolForward{windows(t), t.tensor(5, 16), t.tensor(3, 16)};
     }},
    {"gradient of average pool", [](Tensors& t) -> cuda::Operation {
       return cuda::AveragePoolDataGradient{windows(t), t.tensor(3, 16), t.tensor(5, 16)};
     }}};

TEST(Pieces, OfEightElementsHaveTheBitsOfSingleOnes) {
  in_every_order(1, [](std::uint64_t) {
    for (const Case& c : cases) {
      for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
        SCOPED_TRACE(c.name + ", " + std::string(name(type)));
        CudaDevice device;
        const auto stream = device.make_stream();
        std::vector<Bytes> expected;
        for (const bool is_aligned : {false, true}) {
          Tensors tensors(device, *stream, type, is_aligned);
          const cuda::Operation operation = c.make(tensors);
          std::visit(
              [is_aligned](const auto& body) {
                if constexpr (requires { body.is_wide(); }) {
                  EXPECT_EQ(body.is_wide(), is_aligned);
                } else {
                  ADD_FAILURE() << "takes elements one by one";
                }
              },
              operation);
          const std::vector<Bytes> before = tensors.contents();
          cuda::start(operation, dynamic_cast<cuda::CudaStream&>(*stream).handle());
          cuda::check(cudaStreamSynchronize(dynamic_cast<cuda::CudaStream&>(*stream).handle()),
                      "run a kernel");
          const std::vector<Bytes> made = tensors.contents();
          EXPECT_NE(made, before);
          if (is_aligned) EXPECT_EQ(made, expected);
          expected = made;
        }
      }
    }
  });
}

}  // namespace
}  // namespace paceline::test
