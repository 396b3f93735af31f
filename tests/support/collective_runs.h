// What tests of the executor share: data for a collective, and ranks as threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "models/base/random.h"
#include "models/collective/enumerate.h"
#include "models/collective/schedule.h"
#include "runtime/tensor/kernels.h"
#include "runtime/transport/transport.h"

namespace paceline::test {

using runtime::NumberType;
using Bucket = std::vector<std::byte>;

inline Bucket bucket_of(const std::vector<float>& values, NumberType type) {
  Bucket bucket(values.size() * runtime::bytes_of(type));
  runtime::cast_from_fp32(values, type, bucket.data());
  return bucket;
}

inline std::vector<float> values_of(const Bucket& bucket, NumberType type) {
  std::vector<float> values(bucket.size() / runtime::bytes_of(type));
  runtime::cast_to_fp32(bucket.data(), type, values);
  return values;
}

// Rank r's numbers, in [-4, 4); a rank can draw those of the others, too.
inline std::vector<float> drawn_values(std::uint64_t seed, int rank, std::int64_t elements) {
  Random random(seed * 1009 + static_cast<std::uint64_t>(rank));
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (float& value : values) value = static_cast<float>(random.uniform() * 8 - 4);
  return values;
}

inline double unit_roundoff(NumberType type) {
  return type == NumberType::fp32 ? 0x1p-24 : type == NumberType::fp16 ? 0x1p-11 : 0x1p-8;
}

// How often a contribution may be rounded to the wire type on its way into the result: at most once
// in each step that adds, and at most as often as there are other ranks.
inline int most_roundings(const models::Schedule& schedule) {
  int adding = 0;
  for (int step = 0; step < schedule.steps(); ++step) {
    bool adds = false;
    models::for_each_transfer(schedule, step, models::Span<double>{0, 1},
                              [&](const models::Transfer<double>& t) { adds = adds || t.reduce; });
    adding += adds ? 1 : 0;
  }
  return std::min(adding, schedule.ranks() - 1);
}

// The bound of executor.h on |result - exact sum|, where `magnitude` is the sum of |x|. What is
// smaller than the least normal number rounds by half of the least subnormal.
inline double error_bound(const models::Schedule& schedule, NumberType type, double magnitude) {
  const int p = schedule.ranks();
  const int roundings = most_roundings(schedule);
  const double wire = std::expm1(roundings * std::log1p(unit_roundoff(type)));
  const double sums = std::expm1((p - 1) * std::log1p(unit_roundoff(NumberType::fp32)));
  const double least = type == NumberType::fp16 ? 0x1p-25 : 0x1p-134;
  return (type == NumberType::fp32 ? sums : wire + (1 + wire) * sums) * magnitude +
         (p - 1) * least * (1 + wire);
}

// Runs rank(r) in a thread each. Rethrows the first error in the order of the ranks.
inline void on_ranks(int ranks, const std::function<void(int)>& rank) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        rank(r);
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace paceline::test
