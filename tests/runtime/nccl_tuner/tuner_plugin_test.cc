// The tuner plugin by its file alone: loaded and asked as NCCL does, in each version of its interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "tests/support/nccl_tuner_host.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using test::NcclCosts;
using test::NcclTunerHost;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* plugin = PACELINE_NCCL_TUNER;
constexpr const char* variable = "PACELINE_NCCL_TUNER_FILE";
constexpr int all_gather = 2;
constexpr int all_reduce = 4;
constexpr std::array versions = {3, 4, 5};

constexpr const char* whole = R"(paceline.nccl-tuner/1
# a comment
plan resnet50, fused-ring, 16 ranks
rule allgather 16 2 0 4096 ring ll 2
rule allreduce 8 1 0 65536 ring ll keep
rule allreduce 16 2 0 1023 tree ll keep
rule allreduce 16 2 1024 65536 tree ll128 4
rule allreduce 16 2 1048576 4611686018427387904 ring simple 16
constant 16 2 base tree ll 10.5
constant 16 2 step net ring simple 22
constant 16 2 step nvlink nvls simple 40
constant 16 2 ll-most volta 2 31.25
constant 16 2 tree-most hopper 4 0.125
constant 16 2 nvls-tree-most blackwell 1 77
constant 8 1 base ring ll 999
end 12
)";

class TunerPlugin : public testing::Test {
 protected:
  TunerPlugin() { NcclTunerHost::take_log(); }
  ~TunerPlugin() override { unsetenv(variable); }

  void give(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    setenv(variable, path_.c_str(), 1);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const test::TemporaryFolder& folder() const { return folder_; }

  // NCCL's own costs: all different, some not there.
  static NcclCosts own_costs() {
    NcclCosts costs;
    float next = 5;
    for (auto& row : costs.us) {
      for (float& cost : row) cost = next++;
    }
    costs.us[3] = {-1, -1, -1};
    costs.us[4] = {-1, -1, 30};
    return costs;
  }
  // What NCCL chooses with the plugin's advice, and that no other cost has changed.
  static std::pair<int, int> advised(const NcclTunerHost& host, void* context, int function,
                                     std::size_t bytes, int* channels = nullptr) {
    NcclCosts costs = own_costs();
    host.ask(context, function, bytes, costs);
    const auto choice = costs.choice();
    const NcclCosts before = own_costs();
    for (int a = 0; a < 7; ++a) {
      for (int p = 0; p < 3; ++p) {
        const auto at = [&](const NcclCosts& of) {
          return of.us[static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
        };
        if (std::pair(a, p) != choice || at(costs) != 0) EXPECT_EQ(at(costs), at(before));
      }
    }
    if (channels != nullptr) *channels = costs.channels;
    return choice;
  }
  // The line of the log that a file gives; NCCL then decides by itself.
  std::string refusal(const std::string& text) {
    give(text);
    return refusal_of_what_is_there();
  }
  static std::string refusal_of_what_is_there() {
    std::string line;
    for (const int version : versions) {
      NcclTunerHost host(plugin, version);
      void* const context = host.init(16, 2);
      EXPECT_EQ(advised(host, context, all_reduce, 100), own_costs().choice());
      EXPECT_EQ(host.constants.baseLatencies[0][0], 0);
      host.finish(context);
      const std::vector<std::string> log = NcclTunerHost::take_log();
      EXPECT_EQ(log.size(), 1U);
      if (!line.empty()) EXPECT_EQ(log.front(), line);
      line = log.front();
    }
    return line;
  }

 private:
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "tuner";
};

TEST_F(TunerPlugin, EachVersionTakesTheRuleOfTheSize) {
  give(whole);
  for (const int version : versions) {
    NcclTunerHost host(plugin, version);
    EXPECT_STREQ(host.name(), "Paceline");
    void* const context = host.init(16, 2);
    const auto own = own_costs().choice();
    int channels = 0;
    EXPECT_EQ(advised(host, context, all_reduce, 0), std::pair(0, 0));
    EXPECT_EQ(advised(host, context, all_reduce, 1023, &channels), std::pair(0, 0));
    EXPECT_EQ(channels, 0);
    EXPECT_EQ(advised(host, context, all_reduce, 1024, &channels), std::pair(0, 1));
    EXPECT_EQ(channels, 4);
    EXPECT_EQ(advised(host, context, all_reduce, 65536), std::pair(0, 1));
    EXPECT_EQ(advised(host, context, all_reduce, 65537, &channels), own);
    EXPECT_EQ(channels, 0);
    EXPECT_EQ(advised(host, context, all_reduce, 1048575), own);
    EXPECT_EQ(advised(host, context, all_reduce, 1048576), std::pair(1, 2));
    EXPECT_EQ(advised(host, context, all_reduce, std::size_t{1} << 62), std::pair(1, 2));
    EXPECT_EQ(advised(host, context, all_reduce, SIZE_MAX), own);
    EXPECT_EQ(advised(host, context, all_gather, 4096, &channels), std::pair(1, 0));
    EXPECT_EQ(channels, 2);
    for (const int function : {-1, 0, 1, 3, 5, 10, 1000})
      EXPECT_EQ(advised(host, context, function, 100), own);
    host.finish(context);
  }
}

// A version that is there is not lost to another: 2.30 looks for 6, and falls back to 5.
TEST_F(TunerPlugin, ThreeVersionsAreThere) {
  give(whole);
  const NcclTunerHost host(plugin, 5);
  EXPECT_TRUE(host.has("ncclTunerPlugin_v3"));
  EXPECT_TRUE(host.has("ncclTunerPlugin_v4"));
  EXPECT_FALSE(host.has("ncclTunerPlugin_v2"));
  EXPECT_FALSE(host.has("ncclTunerPlugin_v6"));
}

TEST_F(TunerPlugin, RulesAreThoseOfTheRanksAndNodes) {
  give(whole);
  NcclTunerHost host(plugin, 5);
  void* const small = host.init(8, 1);
  EXPECT_EQ(advised(host, small, all_reduce, 100), std::pair(1, 0));
  EXPECT_EQ(advised(host, small, all_gather, 100), own_costs().choice());
  for (const auto& [ranks, nodes] : {std::pair(16, 1), std::pair(8, 2), std::pair(1, 1)}) {
    void* const other = host.init(static_cast<std::size_t>(ranks), static_cast<std::size_t>(nodes));
    EXPECT_EQ(advised(host, other, all_reduce, 100), own_costs().choice());
    host.finish(other);
  }
  host.finish(small);
}

// NCCL_ALGO and NCCL_PROTO, and what the hardware has not got, leave a negative cost.
TEST_F(TunerPlugin, WhatIsNotThereIsLeftAlone) {
  give(whole);
  for (const int version : versions) {
    NcclTunerHost host(plugin, version);
    void* const context = host.init(16, 2);
    NcclCosts costs = own_costs();
    costs.us[0][1] = -1;
    const NcclCosts before = costs;
    host.ask(context, all_reduce, 2048, costs);
    EXPECT_EQ(costs.us, before.us);
    EXPECT_EQ(costs.channels, 0);
    costs.us[0][1] = std::numeric_limits<float>::quiet_NaN();
    host.ask(context, all_reduce, 2048, costs);
    EXPECT_TRUE(std::isnan(costs.us[0][1]));
    // A library with fewer algorithms, whose table is smaller.
    NcclCosts narrow;
    narrow.us.fill({7, 7, 7});
    host.ask(context, all_reduce, 1 << 20, narrow, 1, 3);
    host.ask(context, all_reduce, 1 << 20, narrow, 7, 2);
    for (const auto& row : narrow.us) EXPECT_THAT(row, ElementsAre(7, 7, 7));
    host.finish(context);
  }
}

// A user who turns CUDA graphs on must not change the decision.
TEST_F(TunerPlugin, RegisteredBuffersChangeNothing) {
  give(whole);
  for (const int version : {4, 5}) {
    NcclTunerHost host(plugin, version);
    void* const context = host.init(16, 2);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}, std::size_t{1} << 30}) {
      NcclCosts with = own_costs();
      NcclCosts without = own_costs();
      host.ask(context, all_reduce, bytes, with, 7, 3, 1);
      host.ask(context, all_reduce, bytes, without, 7, 3, 0);
      EXPECT_EQ(with.us, without.us);
      EXPECT_EQ(with.channels, without.channels);
    }
    host.finish(context);
  }
}

TEST_F(TunerPlugin, ConstantsOfTheCommunicatorTakeThePlaceOfNccls) {
  give(whole);
  NcclTunerHost host(plugin, 5);
  std::fill_n(&host.constants.baseLatencies[0][0], 144, 3.0);
  void* const context = host.init(16, 2);
  test::ncclTunerConstants_v5_t expected;
  std::fill_n(&expected.baseLatencies[0][0], 144, 3.0);
  expected.baseLatencies[0][0] = 10.5;
  expected.hwLatencies[2][1][2] = 22;
  expected.hwLatencies[0][4][2] = 40;
  expected.llMaxBws[0][1] = 31.25;
  expected.perChMaxTreeBws[2][2] = 0.125;
  expected.perChMaxNVLSTreeBws[3][0] = 77;
  EXPECT_EQ(std::memcmp(&host.constants, &expected, sizeof expected), 0);
  host.finish(context);
}

TEST_F(TunerPlugin, TheLogNamesFileDigestAndPlan) {
  give(whole);
  for (const int version : versions) {
    NcclTunerHost host(plugin, version);
    host.finish(host.init(16, 2));
    const std::string after = version == 5 ? "" : "; this NCCL takes no constants";
    EXPECT_THAT(NcclTunerHost::take_log(),
                ElementsAre("INFO paceline tuner: " + path() +
                            ", digest f4e2c1d8cbbedb9f, plan resnet50, fused-ring, 16 ranks: 4 "
                            "rules and 6 constants for 16 ranks on 2 nodes" +
                            after));
    host.finish(host.init(16, 2, false));  // without a logger
    EXPECT_THAT(NcclTunerHost::take_log(), ElementsAre());
  }
}

TEST_F(TunerPlugin, AFileThatCannotBeReadIsOneLine) {
  unsetenv(variable);
  EXPECT_EQ(refusal_of_what_is_there(),
            "WARN paceline tuner: PACELINE_NCCL_TUNER_FILE names no file; NCCL decides");
  setenv(variable, (folder() / "none").c_str(), 1);
  EXPECT_EQ(refusal_of_what_is_there(), "WARN paceline tuner: " + (folder() / "none") +
                                            ": there is no such file; NCCL decides");
  setenv(variable, folder().path().c_str(), 1);
  EXPECT_THAT(refusal_of_what_is_there(), HasSubstr("is no file"));
  setenv(variable, "/dev/zero", 1);
  EXPECT_THAT(refusal_of_what_is_there(), HasSubstr("is no file"));
  const std::string pipe = folder() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  setenv(variable, pipe.c_str(), 1);
  EXPECT_THAT(refusal_of_what_is_there(), HasSubstr("is no file"));
  EXPECT_THAT(refusal(std::string((1 << 20) + 1, '#')), HasSubstr("is larger than 1 MiB"));
}

TEST_F(TunerPlugin, AFileThatIsWrongIsOneLineWithItsPlace) {
  const std::string head = "paceline.nccl-tuner/1\nplan p\n";
  const std::string rule = "rule allreduce 16 2 ";
  const std::string range = "bytes are whole numbers from 0 to 2^62";
  struct Case {
    std::string text;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {"", ": empty"},
      {"\n", ":1: not paceline.nccl-tuner/1"},
      {"paceline.nccl-tuner/2\nplan p\nend 0\n", ":1: not paceline.nccl-tuner/1"},
      {"paceline.nccl-tuner/1", ":1: the last line is cut off"},
      {"paceline.nccl-tuner/1\r\nplan p\r\nend 0\r\n", ":1: not printable ASCII"},
      {"{\"schema\": \"paceline.plan/1\"}\n", ":1: not paceline.nccl-tuner/1"},
      {"paceline.nccl-tuner/1\nend 0\n", ":2: the plan is not named yet"},
      {head + "plan q\nend 0\n", ":3: a second plan"},
      {head, ":2: cut off: there is no line end"},
      {head + "end 1\n", ":3: end does not count the rules and constants above it"},
      {head + "end 99999999999999999999\n",
       ":3: end does not count the rules and constants above it"},
      {head + "end 0\nend 0\n", ":4: something after the end"},
      {head + "end 0\n# more\n", ":4: something after the end"},
      {head + "\nend 0\n", ":3: an empty field, or too many"},
      {head + "rule  allreduce\nend 0\n", ":3: an empty field, or too many"},
      {head + " end 0\n", ":3: an empty field, or too many"},
      {head + "rules\nend 0\n", ":3: neither rule, constant nor end"},
      {head + rule + "0 1 ring simple\nend 1\n", ":3: a rule has eight fields"},
      {head + rule + "0 1 ring simple keep 7\nend 1\n", ":3: an empty field, or too many"},
      {head + "rule reduce_scatter 16 2 0 1 ring simple keep\nend 1\n",
       ":3: no function of NCCL that has rules"},
      {head + "rule allreduce 1 1 0 1 ring simple keep\nend 1\n", ":3: not 2 to 1048576 ranks"},
      {head + "rule allreduce 16 17 0 1 ring simple keep\nend 1\n",
       ":3: not 1 node to one for each rank"},
      {head + "rule allreduce 16 0 0 1 ring simple keep\nend 1\n",
       ":3: not 1 node to one for each rank"},
      {head + rule + "-1 1 ring simple keep\nend 1\n", ":3: " + range},
      {head + rule + "0 4611686018427387905 ring simple keep\nend 1\n", ":3: " + range},
      {head + rule + "0 18446744073709551616 ring simple keep\nend 1\n", ":3: " + range},
      {head + rule + "0 1e9 ring simple keep\nend 1\n", ":3: " + range},
      {head + rule + "00 1 ring simple keep\nend 1\n", ":3: " + range},
      {head + rule + "2 1 ring simple keep\nend 1\n", ":3: the range ends before it begins"},
      {head + rule + "0 1 rings simple keep\nend 1\n", ":3: no algorithm of NCCL"},
      {head + rule + "0 1 Ring simple keep\nend 1\n", ":3: no algorithm of NCCL"},
      {head + rule + "0 1 ring ll12 keep\nend 1\n", ":3: no protocol of NCCL"},
      {head + rule + "0 1 ring simple 0\nend 1\n", ":3: channels are keep, or 1 to 64"},
      {head + rule + "0 1 ring simple 65\nend 1\n", ":3: channels are keep, or 1 to 64"},
      {head + rule + "0 9 ring simple keep\n" + rule + "9 10 tree simple keep\nend 2\n",
       ":4: the range overlaps the one above it, or stands before it"},
      {head + rule + "9 9 ring simple keep\n" + rule + "0 8 tree simple keep\nend 2\n",
       ":4: the range overlaps the one above it, or stands before it"},
      {head + rule + "0 9 ring simple keep\nrule allgather 16 2 0 9 ring ll keep\nend 2\n",
       ":4: rules are not in order"},
      {head + rule + "0 9 ring simple keep\nrule allreduce 8 2 0 9 ring ll keep\nend 2\n",
       ":4: rules are not in order"},
      {head + "constant 16 2 base ring ll\nend 1\n", ":3: no constant of NCCL"},
      {head + "constant 16 2 base ring\nend 1\n", ":3: a constant has at least five fields"},
      {head + "constant 16 2 step ring ll 1\nend 1\n", ":3: no constant of NCCL"},
      {head + "constant 16 2 tree-most hopper 3 1\nend 1\n", ":3: no constant of NCCL"},
      {head + "constant 16 2 base ring ll 0\nend 1\n",
       ":3: a constant is a number above 0, up to 1000000"},
      {head + "constant 16 2 base ring ll 1,5\nend 1\n",
       ":3: a constant is a number above 0, up to 1000000"},
      {head + "constant 16 2 base ring ll inf\nend 1\n",
       ":3: a constant is a number above 0, up to 1000000"},
      {head + "constant 16 2 base ring ll 1e3\nend 1\n",
       ":3: a constant is a number above 0, up to 1000000"},
      {head + "constant 16 2 base ring ll 1000001\nend 1\n",
       ":3: a constant is a number above 0, up to 1000000"},
      {head + "constant 16 2 base ring ll 1\nconstant 16 2 base ring ll 2\nend 2\n",
       ":4: this constant is there twice"},
      {head + "# " + std::string(254, 'x') + "\nend 0\n", ":3: longer than 255 characters"},
      {head + "# \xff\xfe\nend 0\n", ":3: not printable ASCII"},
      {head + "# caf\xc3\xa9\nend 0\n", ":3: not printable ASCII"},
      {head + std::string("end 0\0\n", 7), ":3: not printable ASCII"},
  };
  for (const Case& one : cases)
    EXPECT_EQ(refusal(one.text), "WARN paceline tuner: " + path() + one.problem + "; NCCL decides");
  std::string many = head;
  for (int i = 0; i < 4097; ++i)
    many += rule + std::to_string(i) + " " + std::to_string(i) + " ring ll keep\n";
  EXPECT_THAT(refusal(many + "end 4097\n"), HasSubstr(":4099: more than 4096 rules"));
}

// Cut anywhere, a file is refused: never is a part of its rules in force.
TEST_F(TunerPlugin, NoBeginningOfAFileIsAFile) {
  const std::string text = whole;
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THAT(refusal(text.substr(0, size)), HasSubstr("; NCCL decides")) << size;
}

// Whatever the bytes are: nothing fails, and NCCL's answer is one that it had.
TEST_F(TunerPlugin, NoBytesBringItDown) {
  std::mt19937 random(19);
  NcclTunerHost host(plugin, 5);
  int taken = 0;
  for (int trial = 0; trial < 600; ++trial) {
    std::string text = whole;
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int edit = 0; edit < edits; ++edit) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 30);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text[at] = "0123456789 \n"[random() % 12];
      }
      if (text.empty()) text = "x";
    }
    give(text);
    void* const context = host.init(16, 2);
    taken += context != nullptr ? 1 : 0;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{2000}, std::size_t{1} << 40}) {
      NcclCosts costs = own_costs();
      host.ask(context, all_reduce, bytes, costs);
      EXPECT_GE(costs.choice().first, 0);
      EXPECT_GE(costs.channels, 0);
      EXPECT_LE(costs.channels, 64);
    }
    host.finish(context);
    EXPECT_EQ(NcclTunerHost::take_log().size(), 1U);
  }
  EXPECT_GT(taken, 10);  // some edits leave a file: a size, a comment, the plan's name
}

// The rules by a linear search over random files: the decision of the plugin is the file's.
TEST_F(TunerPlugin, AnswersAreThoseOfALinearSearch) {
  std::mt19937_64 random(7);
  NcclTunerHost host(plugin, 4);
  for (int trial = 0; trial < 40; ++trial) {
    struct Range {
      std::size_t least, most;
      int algorithm, protocol;
    };
    std::vector<Range> ranges;
    std::size_t next = random() % 3;
    const std::size_t count = random() % 200;
    while (ranges.size() < count) {
      const std::size_t end = next + random() % 50;
      ranges.push_back({next, end, static_cast<int>(random() % 3), static_cast<int>(random() % 3)});
      next = end + 1 + random() % 4;
    }
    constexpr std::array algorithm_names = {"tree", "ring", "collnet_direct"};
    constexpr std::array protocol_names = {"ll", "ll128", "simple"};
    std::string text = "paceline.nccl-tuner/1\nplan p\n";
    for (const Range& range : ranges)
      text += "rule allreduce 16 2 " + std::to_string(range.least) + " " +
              std::to_string(range.most) + " " +
              algorithm_names[static_cast<std::size_t>(range.algorithm)] + " " +
              protocol_names[static_cast<std::size_t>(range.protocol)] + " keep\n";
    give(text + "end " + std::to_string(count) + "\n");
    void* const context = host.init(16, 2);
    for (std::size_t bytes = 0; bytes <= next + 2; ++bytes) {
      const auto found = std::find_if(ranges.begin(), ranges.end(), [&](const Range& range) {
        return range.least <= bytes && bytes <= range.most;
      });
      const auto expected = found == ranges.end() ? own_costs().choice()
                                                  : std::pair(found->algorithm, found->protocol);
      ASSERT_EQ(advised(host, context, all_reduce, bytes), expected) << bytes;
    }
    host.finish(context);
  }
}

TEST_F(TunerPlugin, ThreadsAskTheirOwnCommunicators) {
  give(whole);
  NcclTunerHost host(plugin, 4);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const bool small = t % 2 == 0;
      void* const context = host.init(small ? 8 : 16, small ? 1 : 2);
      for (int i = 0; i < 20000; ++i) {
        NcclCosts costs;
        costs.us.fill({5, 6, 7});
        host.ask(context, all_reduce, 512, costs);
        wrong += costs.choice() == (small ? std::pair(1, 0) : std::pair(0, 0)) ? 0 : 1;
      }
      host.finish(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(NcclTunerHost::take_log().size(), 8U);
}

// NCCL may ask one communicator from several threads.
TEST_F(TunerPlugin, ThreadsShareACommunicator) {
  give(whole);
  NcclTunerHost host(plugin, 5);
  void* const context = host.init(16, 2);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        NcclCosts costs;
        costs.us.fill({5, 6, 7});
        host.ask(context, all_reduce, i % 2 == 0 ? 2048 : std::size_t{1} << 30, costs);
        wrong += costs.choice() == (i % 2 == 0 ? std::pair(0, 1) : std::pair(1, 2)) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  host.finish(context);
}

}  // namespace
}  // namespace paceline
