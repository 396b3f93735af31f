// Times all-reduces in the same way for every contender.
//
// Each repetition starts at a barrier, and its time is that of the slowest rank. The first one is not
// counted. Buckets are FP32 and summed in place. The numbers differ by rank and element, and the
// result is checked, since a contender that adds wrongly is no peer. Rank 0 prints one line of JSON
// for each size.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::lab {

// What a contender's library must do besides the all-reduce itself.
struct Ranks {
  int rank = 0;
  int ranks = 1;
};

struct TimingOptions {
  std::int64_t smallest_bytes = 1 << 20;
  std::int64_t largest_bytes = 16 << 20;  // each size is twice the one before
  int repetitions = 5;

  // PROGRAM [smallest [largest [repetitions]]]
  static TimingOptions from_arguments(int argc, char** argv) {
    TimingOptions options;
    if (argc > 1) options.smallest_bytes = std::atoll(argv[1]);
    if (argc > 2) options.largest_bytes = std::atoll(argv[2]);
    if (argc > 3) options.repetitions = std::atoi(argv[3]);
    return options;
  }
};

// Element i of rank r: small integers, so that every order of summation gives the same sum.
inline float element_of(int rank, std::size_t i) {
  return static_cast<float>((to_size(rank) * 7 + i) % 31);
}

inline bool is_sum(const std::vector<float>& bucket, int ranks) {
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    float sum = 0.0F;
    for (int rank = 0; rank < ranks; ++rank) sum += element_of(rank, i);
    if (bucket[i] != sum) return false;
  }
  return true;
}

inline void print_line(const char* name, Ranks ranks, std::int64_t bytes,
                       const std::vector<double>& seconds) {
  std::printf("{\"name\": \"%s\", \"ranks\": %d, \"bytes\": %lld, \"seconds\": [", name,
              ranks.ranks, static_cast<long long>(bytes));
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::printf("%s%.6f", i == 0 ? "" : ", ", seconds[i]);
  }
  std::puts("]}");
  std::fflush(stdout);
}

// Times all_reduce(bucket) on all ranks. barrier() and slowest(seconds) are the library's. Returns
// whether every result was right.
template <class Barrier, class Slowest, class AllReduce>
bool time_all_reduce(const char* name, Ranks ranks, std::int64_t bytes, int repetitions,
                     Barrier barrier, Slowest slowest, AllReduce all_reduce) {
  std::vector<float> bucket(to_size(bytes) / sizeof(float));
  std::vector<double> times;
  bool right = true;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    for (std::size_t i = 0; i < bucket.size(); ++i) bucket[i] = element_of(ranks.rank, i);
    barrier();
    const auto start = std::chrono::steady_clock::now();
    all_reduce(bucket);
    const std::chrono::duration<double> own = std::chrono::steady_clock::now() - start;
    const double seconds = slowest(own.count());
    right = right && is_sum(bucket, ranks.ranks);
    if (repetition >= 0) times.push_back(seconds);
  }
  if (!right) {
    std::fprintf(stderr, "%s: a wrong sum on rank %d\n", name, ranks.rank);
  } else if (ranks.rank == 0) {
    print_line(name, ranks, bytes, times);
  }
  return right;
}

}  // namespace paceline::lab
