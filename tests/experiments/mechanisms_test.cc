#include "experiments/published/mechanisms.h"

#include <gtest/gtest.h>

#include <set>

#include "experiments/reproduction.h"

namespace paceline::experiments {
namespace {

const Mechanism& mechanism(std::string_view name) {
  for (const Mechanism& candidate : mechanisms()) {
    if (candidate.name == name) return candidate;
  }
  ADD_FAILURE() << "no mechanism " << name;
  return mechanisms().front();
}

Reproduction without(std::string_view source, const Mechanism* mechanism) {
  return reproduce(source, {.faults = Faults::are_listed,
                            .threads = 2,
                            .points = CalibrationPoints::one,
                            .without = mechanism});
}

TEST(Mechanisms, HaveNamesOfTheirOwnAndDoSomething) {
  std::set<std::string_view> names;
  for (const Mechanism& one : mechanisms()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.what.empty());
    EXPECT_TRUE(one.from_cluster != nullptr || one.from_job != nullptr) << one.name;
  }
}

// All but two only cost time, so that no prediction is slower without them. Without cycles, Horovod
// sends each gradient by itself; and gradients that just miss one cost a few cycles anywhere. NCCL's
// trees are there to save time. The slowdown is seen over slow networks, whose collectives are on their
// way for most of an iteration.
TEST(Mechanisms, MoveTheRowsThatTheyAreFor) {
  const std::pair<std::string_view, std::string_view> cases[] = {{"waiting", "mlperf"},
                                                                 {"crowding", "lambda"},
                                                                 {"slowdown", "b-caffe"},
                                                                 {"cycle", "github-issues"},
                                                                 {"tcp-shared", "ddl-benchmarks"},
                                                                 {"nccl-trees", "ddl-benchmarks"},
                                                                 {"host-paths", "akiba"}};
  for (const auto& [name, source] : cases) {
    const Reproduction with[] = {without(source, nullptr)};
    const Reproduction bare[] = {without(source, &mechanism(name))};
    EXPECT_GT(rows_moved(with, bare), 0) << name;
    EXPECT_EQ(rows_moved(with, with), 0) << name;
    for (std::size_t i = 0; i < with[0].rows.size(); ++i) {
      const Row& row = with[0].rows[i];
      if (row.provenance != Provenance::predicted || row.is_time || name == "cycle" ||
          name == "nccl-trees")
        continue;
      const double least = row.strategy == "horovod" ? 1 - 3e-3 : 1 - 1e-9;
      EXPECT_GE(bare[0].rows[i].ours, row.ours * least) << name << " " << row.id;
    }
  }
}

}  // namespace
}  // namespace paceline::experiments
