#include "tests/support/cuda_on_host/cudnn/values.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13U));
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(mantissa), -24);
    return sign == 0 ? small : -small;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23U) | (mantissa << 13U));
}

// The bits without the last `cut`, rounded to nearest even.
std::uint32_t without_last_bits(std::uint32_t bits, unsigned cut) {
  const std::uint32_t odd = (bits >> cut) & 1U;
  return (bits + (1U << (cut - 1)) - 1 + odd) >> cut;
}

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U)
    half = 0x7e00U;  // NaN
  else if (magnitude >= 0x47800000U)
    half = 0x7c00U;  // 65536 and more
  else if (magnitude >= 0x38800000U)
    half = without_last_bits(magnitude - 0x38000000U, 13);  // may carry into infinity
  else
    half = static_cast<std::uint32_t>(
        std::lrint(std::ldexp(static_cast<double>(std::bit_cast<float>(magnitude)), 24)));
  return static_cast<std::uint16_t>(sign | half);
}

std::uint16_t to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fffU;
  return static_cast<std::uint16_t>(without_last_bits(bits, 16));
}
float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

const std::vector<float>& halves() {
  static const std::vector<float> table = [] {
    std::vector<float> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = from_half(static_cast<std::uint16_t>(i));
    return all;
  }();
  return table;
}

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

float load_one(cudnnDataType_t type, const std::byte* at) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return halves()[read<std::uint16_t>(at)];
    case CUDNN_DATA_BFLOAT16:
      return from_bfloat(read<std::uint16_t>(at));
    case CUDNN_DATA_FLOAT:
      return read<float>(at);
    case CUDNN_DATA_INT8:
      return read<std::int8_t>(at);
    default:
      die("the double of cuDNN does not read data type " + std::to_string(static_cast<int>(type)));
  }
}

void store_one(cudnnDataType_t type, float value, std::byte* at) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return write(at, to_half(value));
    case CUDNN_DATA_BFLOAT16:
      return write(at, to_bfloat(value));
    case CUDNN_DATA_FLOAT:
      return write(at, value);
    case CUDNN_DATA_INT8:
      return write(at, static_cast<std::int8_t>(value));
    default:
      die("the double of cuDNN does not write data type " + std::to_string(static_cast<int>(type)));
  }
}

// visit(offset in elements) in the order N H W C.
template <class Visit>
void for_each_element(const Tensor& t, Visit visit) {
  const auto& d = t.dims;
  const auto& s = t.strides;
  for (std::int64_t n = 0; n < d[0]; ++n)
    for (std::int64_t h = 0; h < d[2]; ++h)
      for (std::int64_t w = 0; w < d[3]; ++w) {
        const std::int64_t pixel = n * s[0] + h * s[2] + w * s[3];
        for (std::int64_t c = 0; c < d[1]; ++c) visit(pixel + c * s[1]);
      }
}

}  // namespace

Values Values::of(const Tensor& tensor) {
  Values values{tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]};
  values.data.resize(static_cast<std::size_t>(elements(tensor)));
  return values;
}

Values load(const Tensor& tensor, const std::byte* memory) {
  Values values = Values::of(tensor);
  const auto width = static_cast<std::int64_t>(bytes_of(tensor.type));
  float* to = values.data.data();
  for_each_element(
      tensor, [&](std::int64_t offset) { *to++ = load_one(tensor.type, memory + offset * width); });
  return values;
}

void store(const Tensor& tensor, const Values& values, std::byte* memory) {
  const auto width = static_cast<std::int64_t>(bytes_of(tensor.type));
  const float* from = values.data.data();
  for_each_element(tensor, [&](std::int64_t offset) {
    store_one(tensor.type, *from++, memory + offset * width);
  });
}

void round_to(cudnnDataType_t type, std::vector<float>& values) {
  if (type == CUDNN_DATA_HALF)
    for (float& value : values) value = halves()[to_half(value)];
  else if (type == CUDNN_DATA_BFLOAT16)
    for (float& value : values) value = from_bfloat(to_bfloat(value));
}

void round_to_tf32(std::vector<float>& values) {
  constexpr unsigned cut = 13;
  for (float& value : values)
    if (std::isfinite(value))
      value =
          std::bit_cast<float>(without_last_bits(std::bit_cast<std::uint32_t>(value), cut) << cut);
}

}  // namespace cuda_on_host::cudnn
