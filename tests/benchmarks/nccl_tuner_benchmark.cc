// How long NCCL waits for an answer of the tuner plugin: 10^7 calls of getCollInfo with files of 1 to
// 4096 rules, beside a search from the first rule on, as NVIDIA's example plugin does it, and beside
// a call that does nothing.
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/nccl_tuner_host.h"
#include "tests/support/temporary_folder.h"

namespace {

using paceline::test::NcclCosts;

constexpr int calls = 10'000'000;
constexpr std::size_t rule_bytes = 1024;  // the range of one rule
constexpr int all_reduce = 4;

struct Rule {
  int function;
  std::size_t least, most;
  int algorithm, protocol;
};

template <class Ask>
double ns_a_call(std::size_t rules, Ask ask) {
  NcclCosts costs;
  costs.us.fill({5, 6, 7});
  std::size_t bytes = 1;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    bytes = bytes * 6364136223846793005U + 1442695040888963407U;
    ask((bytes >> 33) % (rules * rule_bytes), costs);
    costs.us[1][2] = 7;
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  return time.count() / calls;
}

__attribute__((noinline)) int nothing(std::size_t bytes, NcclCosts& costs) {
  asm volatile("" : : "r"(bytes), "r"(&costs) : "memory");
  return 0;
}

}  // namespace

int main() {
  const paceline::test::TemporaryFolder folder;
  const std::string path = folder / "tuner";
  setenv("PACELINE_NCCL_TUNER_FILE", path.c_str(), 1);
  paceline::test::NcclTunerHost host(PACELINE_NCCL_TUNER, 5);
  std::printf("%d calls each, nanoseconds a call\n  rules  nothing  plugin  from the first on\n",
              calls);
  for (const std::size_t count : {1, 16, 256, 4096}) {
    std::vector<Rule> rules;
    std::string text = "paceline.nccl-tuner/1\nplan benchmark\n";
    for (std::size_t i = 0; i < count; ++i) {
      rules.push_back({all_reduce, i * rule_bytes, (i + 1) * rule_bytes - 1, 1, 2});
      text += "rule allreduce 16 2 " + std::to_string(rules.back().least) + " " +
              std::to_string(rules.back().most) + " ring simple keep\n";
    }
    std::ofstream(path) << text << "end " << count << "\n";
    void* const context = host.init(16, 2);
    const double null_run =
        ns_a_call(count, [](std::size_t bytes, NcclCosts& costs) { nothing(bytes, costs); });
    const double plugin = ns_a_call(count, [&](std::size_t bytes, NcclCosts& costs) {
      host.ask(context, all_reduce, bytes, costs);
    });
    const double linear = ns_a_call(count, [&](std::size_t bytes, NcclCosts& costs) {
      for (const Rule& rule : rules) {
        if (rule.function != all_reduce || bytes < rule.least || bytes > rule.most) continue;
        float& cost = costs.us[static_cast<std::size_t>(rule.algorithm)]
                              [static_cast<std::size_t>(rule.protocol)];
        if (cost >= 0) cost = 0;
        break;
      }
      nothing(bytes, costs);
    });
    std::printf("%7zu  %7.1f  %6.1f  %17.1f\n", count, null_run, plugin, linear);
    host.finish(context);
  }
  return 0;
}
