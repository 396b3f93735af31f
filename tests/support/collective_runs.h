// What tests of the executor share: data for a collective, and ranks as threads.
#pragma once

#include <gtest/gtest.h>

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
#include "models/base/to_size.h"
#include "models/collective/enumerate.h"
#include "models/collective/schedule.h"
#include "runtime/collective/sequential_executor.h"
#include "runtime/tensor/kernels.h"
#include "runtime/transport/transport.h"
#include "tests/support/schedules.h"

namespace paceline::test {

using runtime::NumberType;
using Bucket = std::vector<std::byte>;

inline Bucket bucket_of(const std::vector<float>& values, NumberType type) {
  Bucket bucket(values.size() * runtime::bytes_of(type));
  runtime::cast_from_fp32(values, type, bucket.data());
  return bucket;
}

inline std::uint64_t hash_of(const Bucket& bucket) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const std::byte b : bucket) hash = (hash ^ static_cast<std::uint64_t>(b)) * 1099511628211U;
  return hash;
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

inline constexpr NumberType types[] = {NumberType::fp32, NumberType::fp16, NumberType::bf16};

struct Case {
  std::string name;
  models::Schedule schedule;
  std::int64_t elements = 0;
  NumberType type = NumberType::fp32;
  std::uint64_t seed = 1;
  models::Collective collective = models::Collective::all_reduce;
};

inline std::string described(const Case& c) {
  return c.name + " p=" + std::to_string(c.schedule.ranks()) +
         " elements=" + std::to_string(c.elements) + " " + std::string(models::name(c.type));
}

inline Bucket bucket_of(const Case& c, int rank) {
  return bucket_of(drawn_values(c.seed, rank, c.elements), c.type);
}

// Every collective of the catalogue with all its options, for small sizes. For every type, or with
// more than 8 ranks, where the schedules are many, for the types in turn.
inline std::vector<Case> cases_of_catalogue(int p) {
  std::vector<Case> cases;
  std::uint64_t seed = 1;
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    for (const models::ScheduleOptions& options : option_sets(algorithm, p)) {
      for (const std::int64_t elements : {0, 1, p - 1, 13, 1000}) {
        const NumberType turn = types[++seed % 3];
        for (const NumberType type : types) {
          if (p > 8 && type != turn) continue;
          cases.push_back({models::described(algorithm.name, options), algorithm.build(options),
                           elements, type, seed, algorithm.collective});
        }
      }
    }
  }
  return cases;
}

// One element, an odd number of bytes, a few elements, everything at once.
inline constexpr std::size_t message_sizes[] = {1, 13, 44, std::size_t{1} << 40};

inline std::vector<Case> cases_in_messages(int p, std::size_t message_bytes) {
  std::vector<Case> cases;
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    for (const models::ScheduleOptions& options : option_sets(algorithm, p)) {
      cases.push_back({models::described(algorithm.name, options) + " messages of " +
                           std::to_string(message_bytes),
                       algorithm.build(options), message_bytes == 1 ? 61 : 257,
                       types[cases.size() % 3], message_bytes + cases.size(),
                       algorithm.collective});
    }
  }
  return cases;
}

// The buckets that the ranks of a case must end with.
class Expected {
 public:
  explicit Expected(const Case& c) : case_(c), sum_(to_size(c.elements)), magnitude_(sum_.size()) {
    for (int r = 0; r < c.schedule.ranks(); ++r) {
      sequential_.push_back(values_of(bucket_of(c, r), c.type));
      for (std::size_t i = 0; i < sum_.size(); ++i) {
        sum_[i] += static_cast<double>(sequential_.back()[i]);
        magnitude_[i] += std::abs(static_cast<double>(sequential_.back()[i]));
      }
    }
    runtime::execute_sequentially(c.schedule, sequential_);
  }

  // Holds a rank's result against the exact sum. Where nothing rounds to the wire type, in FP32 and
  // where nothing is added, all of the bucket is what the sequential executor leaves.
  void check(int rank, const Bucket& bucket) const {
    const std::vector<float> values = values_of(bucket, case_.type);
    const bool adds = models::reduces(case_.collective);
    const models::Span<std::int64_t> result = sum_of(rank);
    for (std::int64_t at = result.begin; adds && at < result.begin + result.size; ++at) {
      const std::size_t i = to_size(at);
      ASSERT_LE(std::abs(static_cast<double>(values[i]) - sum_[i]),
                error_bound(case_.schedule, case_.type, magnitude_[i]))
          << described(case_) << " rank " << rank << " element " << i << ": " << values[i]
          << " for " << sum_[i];
    }
    if (!adds || case_.type == NumberType::fp32)
      ASSERT_EQ(values, sequential_[to_size(rank)]) << described(case_) << " rank " << rank;
  }

 private:
  // Where a rank ends with the sum.
  [[nodiscard]] models::Span<std::int64_t> sum_of(int rank) const {
    const models::Span<std::int64_t> bucket{0, case_.elements};
    if (case_.collective == models::Collective::reduce && rank > 0) return {};
    if (case_.collective != models::Collective::reduce_scatter) return bucket;
    return models::part(bucket, rank, case_.schedule.ranks());
  }

  const Case& case_;
  std::vector<double> sum_;
  std::vector<double> magnitude_;               // the sum of |x|
  std::vector<std::vector<float>> sequential_;  // by rank
};

// Holds what all ranks end with against what they should, and all-reduces against each other.
inline void check_results(const Case& c, const std::vector<Bucket>& buckets) {
  const Expected expected(c);
  for (std::size_t r = 0; r < buckets.size(); ++r) {
    expected.check(static_cast<int>(r), buckets[r]);
    if (c.collective == models::Collective::all_reduce)
      ASSERT_EQ(buckets[r], buckets[0]) << described(c) << " rank " << r;
    if (testing::Test::HasFatalFailure()) return;
  }
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
