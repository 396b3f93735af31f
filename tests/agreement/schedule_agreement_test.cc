// Every reader of a schedule against every other: by step, by sender and by receiver; in elements
// and in fractions; proven and executed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"
#include "models/collective/verify.h"
#include "runtime/collective/sequential_executor.h"
#include "tests/support/generators.h"
#include "tests/support/thoroughness.h"

namespace paceline::models {
namespace {

template <class T>
struct Seen {
  int from;
  int to;
  T begin;
  T size;
  bool reduce;
  auto operator<=>(const Seen&) const = default;
};

template <class T>
Seen<T> seen(const Transfer<T>& t) {
  return {t.from, t.to, t.span.begin, t.span.size, t.reduce};
}

// Do all ranks, one by one, send and receive what the step as a whole shows?
template <class T>
bool readers_agree(const Schedule& schedule, int step, Span<T> bucket) {
  std::vector<Seen<T>> all;
  std::vector<Seen<T>> sent;
  std::vector<Seen<T>> received;
  std::map<int, std::vector<Seen<T>>> arrivals;  // in the order of the step
  for_each_transfer(schedule, step, bucket, [&](const Transfer<T>& t) {
    all.push_back(seen(t));
    arrivals[t.to].push_back(seen(t));
  });
  bool own_and_in_order = true;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for_each_send(schedule, rank, step, bucket, [&](const Transfer<T>& t) {
      own_and_in_order = own_and_in_order && t.from == rank;
      sent.push_back(seen(t));
    });
    std::vector<Seen<T>> mine;
    for_each_receive(schedule, rank, step, bucket,
                     [&](const Transfer<T>& t) { mine.push_back(seen(t)); });
    // The order in which a rank reduces is the same for all readers: sums are equal bit for bit.
    own_and_in_order = own_and_in_order && mine == arrivals[rank];
    received.insert(received.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  return own_and_in_order && sent == all && received == all;
}

std::vector<std::pair<std::string, Schedule>> catalogued(int p) {
  std::vector<std::pair<std::string, Schedule>> list;
  for (const CollectiveAlgorithm& algorithm : all_reduce_catalogue()) {
    for (int k = 1; k <= (algorithm.takes_group ? p : 1); ++k) {
      if (p % k == 0)
        list.emplace_back(std::string(algorithm.name) + " k=" + std::to_string(k),
                          algorithm.build({.ranks = p, .group_size = k}));
    }
  }
  return list;
}

TEST(ScheduleAgreement, ByRankEqualsByStep) {
  std::vector<int> counts = {64, 96, 100};
  for (int p = 1; p <= 33; ++p) counts.push_back(p);
  for (const int p : counts) {
    for (const auto& [name, schedule] : catalogued(p)) {
      for (int step = 0; step < schedule.steps(); ++step) {
        ASSERT_TRUE(readers_agree(schedule, step, Span<double>{0.0, 1.0}))
            << name << " p=" << p << " step " << step;
        for (const std::int64_t elements : {0, 1, p - 1, 1001})
          ASSERT_TRUE(readers_agree(schedule, step, Span<std::int64_t>{3, elements}))
              << name << " p=" << p << " step " << step << " elements " << elements;
      }
    }
  }
}

// A few steps of schedules over many ranks.
TEST(ScheduleAgreement, ByRankEqualsByStepForManyRanks) {
  std::mt19937 random(5);
  for (int trial = 0; trial < test::cases(1, 20); ++trial) {
    const int many = 101 + static_cast<int>(random() % 3000);
    for (const CollectiveAlgorithm& algorithm : collective_catalogue()) {
      const bool all_pairs =
          algorithm.name.starts_with("direct-") || algorithm.name == "bruck-all-to-all";
      const int p = all_pairs ? many % 400 + 2 : many;
      const Schedule schedule = algorithm.build({.ranks = p, .group_size = 0});
      for (int i = 0; i < 4; ++i) {
        const int step = static_cast<int>(random() % static_cast<unsigned>(schedule.steps()));
        const std::int64_t elements = random() % 5000;
        ASSERT_TRUE(readers_agree(schedule, step, Span<std::int64_t>{0, elements}))
            << algorithm.name << " p=" << p << " step " << step;
        ASSERT_TRUE(readers_agree(schedule, step, Span<double>{0.0, 1.0}))
            << algorithm.name << " p=" << p << " step " << step;
      }
    }
  }
}

RC_GTEST_PROP(ScheduleAgreement, ByRankEqualsByStepForAnyComposition, ()) {
  const Schedule schedule = *test::all_reduce_schedules(24);
  const std::int64_t elements = test::drawn(0, 60);
  for (int step = 0; step < schedule.steps(); ++step) {
    RC_ASSERT(readers_agree(schedule, step, Span<std::int64_t>{0, elements}));
    RC_ASSERT(readers_agree(schedule, step, Span<double>{0.0, 1.0}));
  }
}

// In a bucket of the natural number of chunks, whole elements are the fractions.
RC_GTEST_PROP(ScheduleAgreement, ElementsEqualFractions, ()) {
  const Schedule schedule = *test::all_reduce_schedules(24);
  const std::int64_t chunks = schedule.natural_chunks();
  RC_PRE(chunks > 0);
  for (int step = 0; step < schedule.steps(); ++step) {
    std::vector<Seen<std::int64_t>> whole;
    std::vector<Seen<std::int64_t>> rounded;
    for_each_transfer(schedule, step, Span<std::int64_t>{0, chunks},
                      [&](const Transfer<std::int64_t>& t) { whole.push_back(seen(t)); });
    for_each_transfer(schedule, step, Span<double>{0.0, static_cast<double>(chunks)},
                      [&](const Transfer<double>& t) {
                        rounded.push_back({t.from, t.to, std::llround(t.span.begin),
                                           std::llround(t.span.size), t.reduce});
                      });
    RC_ASSERT(whole == rounded);
  }
}

double bytes_sent(const Schedule& schedule, double bytes) {
  double sum = 0;
  for (int step = 0; step < schedule.steps(); ++step) {
    for_each_transfer(schedule, step, Span<double>{0.0, bytes},
                      [&](const Transfer<double>& t) { sum += t.span.size; });
  }
  return sum;
}

// Ring: every rank sends 2(p-1)/p n. Hierarchical: k - 1 ranks of each of p/k groups send n up
// and n comes back down the chain to them; the m = p/k masters' ring carries 2(m-1) n.
TEST(ScheduleAgreement, EnumeratedBytesEqualTheClosedForms) {
  constexpr double n = 1e6;
  std::vector<int> counts = {64, 96, 100, 128, 600};
  for (int p = 1; p <= 33; ++p) counts.push_back(p);
  for (const int p : counts) {
    const double ring = 2.0 * (p - 1) * n;
    EXPECT_NEAR(bytes_sent(ring_all_reduce(p), n), ring, 1e-9 * ring) << "p=" << p;
    for (int k = 1; k <= p; ++k) {
      if (p % k != 0) continue;
      const double m = p / k;
      const double expected = 2 * m * (k - 1) * n + 2 * (m - 1) * n;
      EXPECT_NEAR(bytes_sent(hierarchical_all_reduce(p, k), n), expected, 1e-9 * expected)
          << "p=" << p << " k=" << k;
    }
  }
}

// A schedule that is proven also runs right, on buffers of whole numbers whose sums are exact.
bool sums(const Schedule& schedule, std::size_t elements) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  std::vector<std::vector<float>> buffers(ranks, std::vector<float>(elements));
  std::vector<float> sum(elements, 0.0F);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < elements; ++i) {
      // A multiple of 1/8 below 2^10 that is another for every rank.
      buffers[rank][i] = static_cast<float>(rank * 61 + (i * 13) % 53) * 0.125F;
      sum[i] += buffers[rank][i];
    }
  }
  runtime::execute_sequentially(schedule, buffers);
  return std::all_of(buffers.begin(), buffers.end(),
                     [&](const std::vector<float>& buffer) { return buffer == sum; });
}

TEST(ScheduleAgreement, WhatIsCataloguedRunsAsASum) {
  for (int p = 1; p <= 17; ++p) {
    for (const auto& [name, schedule] : catalogued(p)) {
      for (const int elements : {0, 1, 2, p - 1, p + 1, 101, 1000})
        EXPECT_TRUE(sums(schedule, static_cast<std::size_t>(elements)))
            << name << " p=" << p << " elements " << elements;
    }
  }
}

RC_GTEST_PROP(ScheduleAgreement, WhatIsProvenRunsAsASum, ()) {
  const Schedule schedule = *test::all_reduce_schedules(20);
  const int elements = test::drawn(0, 70);
  RC_ASSERT(std::holds_alternative<Proof>(verify_all_reduce(schedule, elements)));
  RC_ASSERT(sums(schedule, static_cast<std::size_t>(elements)));
}

}  // namespace
}  // namespace paceline::models
