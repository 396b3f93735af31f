// What tests of the CUDA device share. They run on the doubles in every order of the scheduler, and
// once on a GPU.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/random.h"
#include "runtime/device/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/support/cuda_on_host/control.h"
#include "tests/support/error_of.h"

namespace paceline::test {

using runtime::ArrayView;
using runtime::CudaDevice;
using runtime::Device;
using runtime::Memory;
using runtime::MemoryKind;
using runtime::NumberType;
using runtime::Stream;

// Calls body(seed), on the doubles in each order under this many seeds, and looks that nothing raced
// and everything was given back.
template <class Body>
void in_every_order(std::uint64_t seeds, Body body) {
  using cuda_on_host::Order;
  for (const Order order : {Order::eager, Order::latest, Order::random}) {
    for (std::uint64_t seed = 1; seed <= (order == Order::eager ? 1 : seeds); ++seed) {
      SCOPED_TRACE(::testing::Message()
                   << "order " << static_cast<int>(order) << ", seed " << seed);
      cuda_on_host::reset(order, seed);
      body(seed);
      EXPECT_THAT(cuda_on_host::races(), ::testing::IsEmpty());
      EXPECT_THAT(cuda_on_host::leaks(), ::testing::IsEmpty());
      if (::testing::Test::HasFailure() || !cuda_on_host::present()) return;
    }
  }
}

using Bytes = std::vector<std::byte>;

// Memory of the device that holds these bytes, an even number of them.
inline Memory on_device(Device& device, Stream& stream, const Bytes& bytes) {
  Memory memory = device.allocate(bytes.size(), device.fastest());
  const Memory staging = device.allocate(bytes.size(), MemoryKind::pinned);
  std::ranges::copy(bytes, staging.bytes().begin());
  stream.start(runtime::Cast{staging.array(NumberType::bf16), memory.array(NumberType::bf16)});
  runtime::wait_for(stream.record(), Seconds{60}, "copy to the device");
  return memory;
}
inline Bytes bytes_of(Device& device, Stream& stream, const Memory& memory) {
  const Memory staging = device.allocate(memory.size(), MemoryKind::pinned);
  stream.start(runtime::Cast{memory.array(NumberType::bf16), staging.array(NumberType::bf16)});
  runtime::wait_for(stream.record(), Seconds{60}, "copy from the device");
  const std::span<const std::byte> bytes = staging.bytes();
  return {bytes.begin(), bytes.end()};
}

// Numbers whose bits are anything: NaN with any payload, infinities, subnormals, and what is near
// the ends and the ties of 16-bit types.
inline Bytes any_numbers(Random& random, NumberType type, std::size_t elements) {
  Bytes bytes(elements * runtime::bytes_of(type));
  const auto put = [&](std::size_t i, auto bits) {
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  };
  for (std::size_t i = 0; i < elements; ++i) {
    const auto bits = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32));
    if (type != NumberType::fp32) {
      put(i, static_cast<std::uint16_t>(bits));
      continue;
    }
    switch (random.below(6)) {
      case 0:
        put(i, bits);
        break;
      case 1:  // subnormal or small
        put(i, bits & 0x80ffffffU);
        break;
      case 2:  // within the range of FP16, ties among them
        put(i,
            (bits & 0x80000000U) | ((0x33000000U + (bits & 0x0fffffffU) % 0x15000000U) & ~0xfffU));
        break;
      case 3:  // infinite or NaN
        put(i, bits | 0x7f800000U);
        break;
      default:
        put(i, static_cast<float>(static_cast<int>(bits % 2001) - 1000) / 37);
    }
  }
  return bytes;
}

// Finite numbers of a training, not tiny.
inline std::vector<float> plain_numbers(Random& random, std::size_t elements, float spread = 1) {
  std::vector<float> values(elements);
  for (float& value : values) value = static_cast<float>(random.uniform() * 2 - 1) * spread;
  return values;
}

// An array of a test: the same bytes on the host and on the device, of which a kernel gets the
// numbers from `first` on.
struct Operand {
  NumberType type = NumberType::fp32;
  std::size_t first = 0;
  std::size_t elements = 0;
  Bytes bytes = {};
};

// Runs a kernel on the CPU and on the device, and looks that all bytes of all operands are the same
// then, those around the arrays, too. make(views, found) makes it from arrays in the order of the
// operands.
template <class Make>
void expect_the_bits_of_the_cpu(Device& device, Stream& stream,
                                const std::vector<Operand>& operands, const Make& make,
                                const std::string& what) {
  std::vector<Memory> of_host;
  std::vector<Memory> of_device;
  std::vector<ArrayView> on_host;
  std::vector<ArrayView> on_the_device;
  for (const Operand& operand : operands) {
    of_host.push_back(runtime::host_memory(operand.bytes.size()));
    std::ranges::copy(operand.bytes, of_host.back().bytes().begin());
    of_device.push_back(on_device(device, stream, operand.bytes));
    on_host.push_back(of_host.back().array(operand.type).part(operand.first, operand.elements));
    on_the_device.push_back(
        of_device.back().array(operand.type).part(operand.first, operand.elements));
  }
  const Memory found = device.allocate(2 * sizeof(std::uint32_t), MemoryKind::pinned);
  auto* const flags = reinterpret_cast<std::uint32_t*>(found.data());
  flags[0] = flags[1] = 0;
  runtime::run_on_cpu(make(on_host, &flags[0]));
  stream.start(make(on_the_device, &flags[1]));
  runtime::wait_for(stream.record(), Seconds{60}, "run the kernel");
  EXPECT_EQ(flags[1], flags[0]) << what;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Bytes result = bytes_of(device, stream, of_device[i]);
    const std::span<const std::byte> expected = of_host[i].bytes();
    const auto differs = std::ranges::mismatch(result, expected).in1 - result.begin();
    ASSERT_EQ(static_cast<std::size_t>(differs), result.size())
        << what << ": operand " << i << " differs from byte " << differs << " on";
  }
}

}  // namespace paceline::test
