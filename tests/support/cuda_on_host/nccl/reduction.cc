#include <algorithm>
#include <cstring>

#include "tests/support/cuda_on_host/nccl/parts.h"

namespace cuda_on_host::nccl {
namespace {

// The type in which a number is computed with.
template <class T>
struct Computed {
  using Type = float;
};
template <>
struct Computed<double> {
  using Type = double;
};
template <class T>
requires std::is_integral_v<T>
struct Computed<T> {
  using Type = T;
};

template <class T>
T rounded(typename Computed<T>::Type value) {
  return T(value);
}

template <class T>
T number(const std::byte* array, std::size_t index) {
  T value;
  std::memcpy(&value, array + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
T combined(T a, T b, ncclRedOp_t op) {
  using C = typename Computed<T>::Type;
  const C x = static_cast<C>(a);
  const C y = static_cast<C>(b);
  switch (op) {
    case ncclProd:
      return rounded<T>(static_cast<C>(x * y));
    case ncclMax:
      return y > x ? b : a;
    case ncclMin:
      return y < x ? b : a;
    default:
      return rounded<T>(static_cast<C>(x + y));
  }
}

template <class T>
void reduce_as(const std::vector<const std::byte*>& in, std::byte* out, std::size_t count,
               ncclRedOp_t op) {
  using C = typename Computed<T>::Type;
  const auto ranks = static_cast<C>(in.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto contribution = [&](std::size_t rank) {
      const T value = number<T>(in[rank], i);
      if constexpr (!std::is_integral_v<T>) {
        if (op == ncclAvg) return rounded<T>(static_cast<C>(value) * (C{1} / ranks));
      }
      return value;
    };
    T sum = contribution(0);
    for (std::size_t rank = 1; rank < in.size(); ++rank)
      sum = combined<T>(sum, contribution(rank), op);
    if constexpr (std::is_integral_v<T>) {
      if (op == ncclAvg) sum = static_cast<T>(sum / ranks);
    }
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

}  // namespace

void reduce(const std::vector<const std::byte*>& in, std::byte* out, std::size_t count,
            ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclFloat32:
      return reduce_as<float>(in, out, count, op);
    case ncclFloat16:
      return reduce_as<__half>(in, out, count, op);
    case ncclBfloat16:
      return reduce_as<__nv_bfloat16>(in, out, count, op);
    case ncclFloat64:
      return reduce_as<double>(in, out, count, op);
    case ncclInt32:
      return reduce_as<std::int32_t>(in, out, count, op);
    case ncclUint32:
      return reduce_as<std::uint32_t>(in, out, count, op);
    case ncclInt64:
      return reduce_as<std::int64_t>(in, out, count, op);
    case ncclUint64:
      return reduce_as<std::uint64_t>(in, out, count, op);
    default:
      die("the double of libnccl does not reduce this type");
  }
}

}  // namespace cuda_on_host::nccl
