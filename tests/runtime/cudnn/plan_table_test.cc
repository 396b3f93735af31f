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
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/network/zoo.h"
#include "runtime/network/cudnn/planner.h"
#include "runtime/network/steps/layer_steps.h"
#include "tests/support/golden.h"
#include "tests/support/source_tree.h"

namespace paceline::runtime::cudnn {

using namespace steps;
namespace {

using models::NumberType;

constexpr int batch = 64;
constexpr std::array networks = {"alexnet",      "alexnet-bn",   "alexnet-bn-refined", "vgg16",
                                 "inception-v3", "inception-v4", "resnet50",           "resnet101",
                                 "resnet152",    "resnet-small", "cnn-small"};

struct Asked {
  Operation operation;
  NumberType storage;
  std::set<int> roles;  // of its operands
};
using AskedByKey = std::map<std::string, Asked>;

void add_network(AskedByKey& asked, const std::string& network, NumberType storage) {
  for (const Step& step : layer_steps(models::zoo_network(network), batch)) {
    const auto* operation = std::get_if<Operation>(&step.work);
    if (operation == nullptr) continue;
    Asked one{*operation, storage, {}};
    for (const auto* operands : {&step.reads, &step.writes})
      for (const Operand& operand : *operands) one.roles.insert(operand.role);
    asked.emplace(key(*operation, storage), std::move(one));
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

// "batch-norm-forward add relu fp16" of "batch-norm-forward 64x16x28x28 add relu fp16", and "sum of
// several fp16" of "sum 64x16x28x28 of 3 fp16": what has a graph of its own.
std::string kind_of(const std::string& key) {
  std::istringstream words(key);
  std::string kind;
  std::string before;
  for (std::string word; words >> word;) {
    const bool is_type = word.starts_with("fp") || word.starts_with("bf");
    if (is_type || word.find_first_of("0123456789>") == std::string::npos) {
      kind += (kind.empty() ? "" : " ") + word;
    } else if (before == "of") {
      kind += word == "1" ? " one" : " several";
    }
    before = word;
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

// What a plan says of the graph that it computes.
class Graph {
 public:
  explicit Graph(const Plan& plan)
      : graph_(nlohmann::json::parse(plan.serialised).at("operationGraph")) {}

  // The unique ids of the tensors in memory of the device. They stand in NHWC order.
  [[nodiscard]] std::set<int> ids() const {
    std::set<int> ids;
    for (const auto& tensor : graph_.at("tensors")) {
      const auto size = tensor.at("dim").get<std::vector<std::int64_t>>();
      const auto stride = tensor.at("stride").get<std::vector<std::int64_t>>();
      const std::vector<std::int64_t> nhwc = {size[1] * size[2] * size[3], 1, size[1] * size[3],
                                              size[1]};
      EXPECT_EQ(stride, nhwc) << tensor;
      if (!tensor.at("isVirtual").get<bool>() && !tensor.at("isByValue").get<bool>())
        ids.insert(std::stoi(tensor.at("name").get<std::string>()));
    }
    return ids;
  }
  // Its nodes and the types of its tensors, without sizes.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (auto node : graph_.at("nodes")) {
      for (const char* size : {"pad", "prePadding", "postPadding", "stride", "dilation", "window"})
        node.erase(size);
      text += "  " + node.dump() + "\n";
    }
    text += "  tensors:";
    for (const auto& tensor : graph_.at("tensors")) {
      text += " " + tensor.at("name").get<std::string>() + " " +
              tensor.at("dataType").get<std::string>().substr(std::string("CUDNN_DATA_").size()) +
              (tensor.at("isVirtual").get<bool>() ? " virtual" : "") +
              (tensor.at("isByValue").get<bool>() ? " number" : "") + ",";
    }
    text.back() = '\n';
    return text;
  }

 private:
  nlohmann::json graph_;
};

constexpr const char* graphs_header =
    "# The graphs of cuDNN for each kind of operation. Numbers are those of Role; from 1000 on "
    "they are "
    "tensors that only the graph itself reads.\n";

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
  const char* value = std::getenv("PACELINE_UPDATE_GOLDEN");
  return value != nullptr && std::string(value) == "1";
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
    std::map<std::string, std::string> graphs;
    for (const auto& [key, one] : asked) {
      const auto row = expected.find(key);
      if (row == expected.end()) {
        ADD_FAILURE() << "the table has no row of " << key;
        continue;
      }
      seen.insert(key);
      const Plan plan = planner.plan(one.operation, one.storage);
      EXPECT_EQ(row_of(plan), row->second) << key;
      const Graph graph(plan);
      EXPECT_EQ(graph.ids(), one.roles) << key << ": the plan has other operands than the step";
      if (one.storage == NumberType::fp16) graphs.try_emplace(kind_of(key), graph.text());
    }
    if (complete) EXPECT_EQ(seen.size(), expected.size()) << "rows that no network has";
    if (!complete) test::expect_golden("cudnn/graphs.txt", text_of(graphs));
    if (HasFailure()) ADD_FAILURE() << "refresh the tables: " << refresh;
  }

  static std::string text_of(const std::map<std::string, std::string>& graphs) {
    std::string text = graphs_header;
    for (const auto& [kind, graph] : graphs) text += kind + "\n" + graph;
    return text;
  }

  void write(const AskedByKey& asked) const {
    std::map<std::string, std::string> graphs;
    const AskedByKey share = default_share();
    const Planner planner(shipped_device(GetParam()));
    std::ofstream out(path_of(GetParam()));
    out << header_of(GetParam()) << "\n";
    for (const auto& [key, one] : asked) {
      const Plan plan = planner.plan(one.operation, one.storage);
      out << key << "\t" << row_of(plan) << "\n";
      if (one.storage == NumberType::fp16 && share.contains(key))
        graphs.try_emplace(kind_of(key), Graph(plan).text());
    }
    ASSERT_TRUE(out.flush());
    if (GetParam() == "h100") test::expect_golden("cudnn/graphs.txt", text_of(graphs));
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
