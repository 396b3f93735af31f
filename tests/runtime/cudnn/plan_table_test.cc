// Plans of every layer of every network that trains, for an A100 and an H100 that are not there,
// against committed tables (tests/golden/cudnn): engine, workspace, how many configurations cuDNN
// offers, and which is taken. A table is of one version of cuDNN; another skips its tests.
//
// Refresh the tables, in some six minutes:
//   PACELINE_UPDATE_GOLDEN=1 ctest --test-dir build/release -C slow -L slow
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "models/network/zoo.h"
#include "runtime/network/cudnn/layer_steps.h"
#include "runtime/network/cudnn/planner.h"
#include "tests/support/source_tree.h"

namespace paceline::runtime::cudnn {
namespace {

using models::NumberType;

constexpr int batch = 64;
constexpr std::array networks = {"alexnet",      "alexnet-bn",   "alexnet-bn-refined", "vgg16",
                                 "inception-v3", "inception-v4", "resnet50",           "resnet101",
                                 "resnet152",    "resnet-small", "cnn-small"};

struct Asked {
  Operation operation;
  NumberType storage;
};
using AskedByKey = std::map<std::string, Asked>;

void add_network(AskedByKey& asked, const std::string& network, NumberType storage) {
  for (const Step& step : layer_steps(models::zoo_network(network), batch)) {
    if (const auto* operation = std::get_if<Operation>(&step.work))
      asked.emplace(key(*operation, storage), Asked{*operation, storage});
  }
}

// All distinct operations: of every network in FP16, and of one network in the other types.
AskedByKey everything() {
  AskedByKey asked;
  for (const char* network : networks) add_network(asked, network, NumberType::fp16);
  for (const NumberType storage : {NumberType::bf16, NumberType::fp32})
    add_network(asked, "resnet-small", storage);
  AskedByKey resnet;
  for (const NumberType storage : {NumberType::bf16, NumberType::fp32})
    add_network(resnet, "resnet50", storage);
  for (const auto& [key, one] : resnet) {
    if (std::holds_alternative<Convolution>(one.operation)) asked.emplace(key, one);
  }
  return asked;
}

// "batch-norm-forward add relu fp16" of "batch-norm-forward 64x16x28x28 add relu fp16".
std::string kind_of(const std::string& key) {
  std::istringstream words(key);
  std::string kind;
  for (std::string word; words >> word;) {
    if (word.find_first_of("0123456789>") == std::string::npos || word.starts_with("fp") ||
        word.starts_with("bf"))
      kind += word + " ";
  }
  return kind;
}

// All convolutions, which cuDNN brings compiled; and one of each kind of all else, of the small
// networks as far as they have it.
AskedByKey default_share() {
  AskedByKey share;
  std::set<std::string> kinds;
  AskedByKey small;
  add_network(small, "resnet-small", NumberType::fp16);
  add_network(small, "cnn-small", NumberType::fp16);
  const AskedByKey all = everything();
  for (const AskedByKey* asked : {&std::as_const(small), &all}) {
    for (const auto& [key, one] : *asked) {
      if (std::holds_alternative<Convolution>(one.operation)) {
        share.emplace(key, one);
      } else if (one.storage == NumberType::fp16 && kinds.insert(kind_of(key)).second) {
        share.emplace(key, one);
      }
    }
  }
  return share;
}

using Table = std::map<std::string, std::string>;  // rows by key

std::string row_of(const Plan& plan) {
  return fmt::format("{}\t{}\t{}\t{}\t{}", plan.engine, plan.workspace, plan.configurations,
                     plan.chosen, plan.compiled ? "compiled" : "brought");
}

std::string path_of(const std::string& device) {
  return test::golden_path("cudnn/plans_" + device + ".tsv");
}

std::string header_of(const std::string& device) {
  return fmt::format(
      "# cuDNN {} for {}, batch {}: operation, engine, workspace in bytes, configurations offered, "
      "the place of the chosen one, compiled at run time or brought",
      cudnn_version(), device, batch);
}

// Refreshing is the slow test's work, and a skip says so.
bool is_refreshing() {
  return std::getenv("PACELINE_UPDATE_GOLDEN") != nullptr;
}

class PlanTable : public testing::TestWithParam<std::string> {
 protected:
  // Plans all of it and compares. Every operation of the networks has a row, and every row of
  // `complete` an operation.
  void check(const AskedByKey& asked, bool complete) const {
    const Table expected = read();
    if (IsSkipped()) return;
    const Planner planner(shipped_device(GetParam()));
    std::set<std::string> seen;
    for (const auto& [key, one] : asked) {
      const auto row = expected.find(key);
      if (row == expected.end()) {
        ADD_FAILURE() << "the table has no row of " << key;
        continue;
      }
      seen.insert(key);
      EXPECT_EQ(row_of(planner.plan(one.operation, one.storage)), row->second) << key;
    }
    if (complete) EXPECT_EQ(seen.size(), expected.size()) << "rows that no network has";
    if (HasFailure()) ADD_FAILURE() << "refresh the tables: " << refresh;
  }

  void write(const AskedByKey& asked) const {
    const Planner planner(shipped_device(GetParam()));
    std::ofstream out(path_of(GetParam()));
    out << header_of(GetParam()) << "\n";
    for (const auto& [key, one] : asked)
      out << key << "\t" << row_of(planner.plan(one.operation, one.storage)) << "\n";
    ASSERT_TRUE(out.flush());
  }

  static constexpr const char* refresh =
      "PACELINE_UPDATE_GOLDEN=1 ctest --test-dir build/release -C slow -L slow";

 private:
  [[nodiscard]] Table read() const {
    Table table;
    [&] {
      std::ifstream in(path_of(GetParam()));
      ASSERT_TRUE(in) << path_of(GetParam()) << " is not there: " << refresh;
      std::string line;
      std::getline(in, line);
      if (line != header_of(GetParam()))
        GTEST_SKIP() << "the table is of another version: it begins '" << line.substr(0, 40)
                     << "', and cuDNN " << cudnn_version() << " is here. Refresh it: " << refresh;
      while (std::getline(in, line)) {
        const std::size_t tab = line.find('\t');
        table.emplace(line.substr(0, tab), line.substr(tab + 1));
      }
    }();
    return table;
  }
};

class SlowPlanTable : public PlanTable {};

TEST_P(PlanTable, HoldsAllConvolutionsAndOneOfEachOtherKind) {
  if (is_refreshing()) GTEST_SKIP() << refresh;
  check(default_share(), false);
}

TEST_P(SlowPlanTable, HoldsEveryOperation) {
  if (is_refreshing()) return write(everything());
  check(everything(), true);
}

const auto devices = testing::Values("a100-80g", "h100");
std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(0, info.param.find('-'));
}
INSTANTIATE_TEST_SUITE_P(Devices, PlanTable, devices, name_of);
INSTANTIATE_TEST_SUITE_P(Devices, SlowPlanTable, devices, name_of);

}  // namespace
}  // namespace paceline::runtime::cudnn
