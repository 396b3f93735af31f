#include "simulator/export/nccl_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>

#include "models/cluster/catalog.h"

namespace paceline::simulator {
namespace {

struct Case {
  const char* cluster;
  int ranks;
};
constexpr Case cases[] = {{"h200-ndr", 2},   {"h200-ndr", 8},    {"h200-ndr", 16},
                          {"h200-ndr", 64},  {"jizhi-p40", 8},   {"jizhi-p40", 16},
                          {"jizhi-p40", 64}, {"jizhi-p40", 1024}};

NcclPractice practice_of(const models::Cluster& cluster, int ranks, const Pace& pace = {}) {
  return {
      nccl_tables("2.28"), cluster, ranks, paced_cost(cluster, nullptr, Bound::stated, ranks, pace),
      Bound::stated,       pace};
}

Seconds least_taken(const NcclPractice& practice, Bytes bytes,
                    std::optional<NcclWayAlgorithm> only = {}) {
  Seconds least{1e9};
  for (const NcclWay& way : nccl_ways(practice)) {
    if (!only || way.algorithm == *only) least = std::min(least, taken(practice, way, bytes));
  }
  return least;
}

const NcclRule* rule_of(const std::vector<NcclRule>& rules, std::int64_t bytes) {
  for (const NcclRule& rule : rules) {
    if (rule.least <= bytes && bytes <= rule.most) return &rule;
  }
  return nullptr;
}

std::int64_t random_size(std::mt19937_64& random) {
  std::uniform_real_distribution<double> exponent(0, 34);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::exp2(exponent(random))), 1,
                                  most_rule_bytes);
}

TEST(NcclRules, TheOwnChoiceIsTheModels) {
  for (const auto& [name, ranks] : cases) {
    const models::Cluster cluster = models::catalog_cluster(name);
    const NcclPractice practice = practice_of(cluster, ranks);
    for (std::int64_t bytes = 1; bytes < most_rule_bytes; bytes = bytes * 3 + 1) {
      const Bytes size{static_cast<double>(bytes)};
      const NcclWay way = own_choice(practice, size);
      EXPECT_NEAR(taken(practice, way, size) / practice.time(size), 1, 1e-12) << name << bytes;
    }
  }
}

// With a rule, no size takes longer than NCCL's own choice; without one, no other way gains more
// than what is left to NCCL.
TEST(NcclRules, NoSizeTakesLongerAndNoGainIsLeft) {
  std::mt19937_64 random(3);
  int ruled = 0;
  for (const auto& [name, ranks] : cases) {
    const models::Cluster cluster = models::catalog_cluster(name);
    for (const Pace& pace : {Pace{}, Pace{5, 1, true, true}, Pace{1, 3, true, true}}) {
      const NcclPractice practice = practice_of(cluster, ranks, pace);
      const std::vector<NcclRule> rules = nccl_rules(practice);
      for (std::size_t i = 1; i < rules.size(); ++i) EXPECT_GT(rules[i].least, rules[i - 1].most);
      for (int trial = 0; trial < 400; ++trial) {
        const std::int64_t bytes = random_size(random);
        const Bytes size{static_cast<double>(bytes)};
        const Seconds own = practice.time(size);
        const Seconds best = least_taken(practice, size);
        if (const NcclRule* rule = rule_of(rules, bytes)) {
          ++ruled;
          EXPECT_FALSE(rule->is_asked);
          EXPECT_LE(taken(practice, rule->way, size), own) << name << " " << ranks << " " << bytes;
          EXPECT_NEAR(taken(practice, rule->way, size) / best, 1, 1e-9);
          EXPECT_LE(own / best - 1, rule->gain * 1.2 + 1e-9);
        } else {
          EXPECT_LT(own / best - 1, least_nccl_gain * (1 + 1e-6)) << name << " " << bytes;
        }
      }
    }
  }
  EXPECT_GT(ruled, 500);
}

// Borders are exact: one byte beyond, the decision is another.
TEST(NcclRules, BordersAreExactToTheByte) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const NcclPractice practice = practice_of(cluster, 64, Pace{5, 1, true, true});
  const std::vector<NcclRule> rules = nccl_rules(practice);
  ASSERT_GT(rules.size(), 1U);
  for (const NcclRule& rule : rules) {
    const auto decides = [&](std::int64_t bytes) {
      const Bytes size{static_cast<double>(bytes)};
      return taken(practice, rule.way, size) == least_taken(practice, size) &&
             practice.time(size) / taken(practice, rule.way, size) - 1 >= least_nccl_gain;
    };
    EXPECT_TRUE(decides(rule.least));
    EXPECT_TRUE(decides(rule.most));
    if (rule.least > 1) EXPECT_FALSE(decides(rule.least - 1)) << rule.least;
    if (rule.most < most_rule_bytes) EXPECT_FALSE(decides(rule.most + 1)) << rule.most;
  }
}

TEST(NcclRules, WhatAPlanAsksIsTheFastestOfItsAlgorithm) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const NcclPractice practice = practice_of(cluster, 16);
  const std::vector<NcclAsked> asked = {{4096, 4096, NcclAlgorithm::ring},
                                        {1 << 20, 1 << 26, NcclAlgorithm::tree},
                                        {1 << 27, most_rule_bytes, NcclAlgorithm::ring}};
  for (const bool asked_only : {false, true}) {
    const std::vector<NcclRule> rules =
        nccl_rules(practice, asked, asked_only ? NcclElsewhere::leave : NcclElsewhere::improve);
    std::mt19937_64 random(5);
    for (int trial = 0; trial < 2000; ++trial) {
      const std::int64_t bytes = trial == 0 ? 4096 : random_size(random);
      const Bytes size{static_cast<double>(bytes)};
      const NcclRule* rule = rule_of(rules, bytes);
      const auto range = std::find_if(asked.begin(), asked.end(), [&](const NcclAsked& one) {
        return one.least <= bytes && bytes <= one.most;
      });
      if (range == asked.end()) {
        EXPECT_TRUE(rule == nullptr || (!rule->is_asked && !asked_only)) << bytes;
        continue;
      }
      ASSERT_NE(rule, nullptr) << bytes;
      EXPECT_TRUE(rule->is_asked);
      const NcclWayAlgorithm algorithm =
          range->algorithm == NcclAlgorithm::ring ? NcclWayAlgorithm::ring : NcclWayAlgorithm::tree;
      EXPECT_EQ(rule->way.algorithm, algorithm);
      EXPECT_EQ(taken(practice, rule->way, size), least_taken(practice, size, algorithm));
    }
  }
}

// Where every size has to have a rule, those without a gain have NCCL's own choice.
TEST(NcclRules, GapsAreFilledWithTheOwnChoice) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const NcclPractice practice = practice_of(cluster, 64);
  const std::vector<NcclRule> rules = nccl_rules(practice);
  const std::vector<NcclRule> all = nccl_rules(practice, {}, NcclElsewhere::fill);
  EXPECT_EQ(all.front().least, 1);
  EXPECT_EQ(all.back().most, most_rule_bytes);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].least, all[i - 1].most + 1);
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t bytes = random_size(random);
    const NcclRule* gains = rule_of(rules, bytes);
    EXPECT_EQ(rule_of(all, bytes)->way,
              gains ? gains->way : own_choice(practice, Bytes{static_cast<double>(bytes)}));
  }
}

TEST(NcclRules, OneRankHasNone) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  EXPECT_TRUE(nccl_rules(practice_of(cluster, 1)).empty());
  EXPECT_TRUE(nccl_constants(practice_of(cluster, 1)).values.empty());
}

template <std::size_t n>
std::size_t place(const char* const (&names)[n], const std::string& name) {
  const auto found = std::find(names, names + n, name);
  if (found == names + n) throw std::runtime_error("no name: " + name);
  return static_cast<std::size_t>(found - names);
}

// NCCL's tables with the constants in their place, as the plugin puts them there.
NcclTables replaced(NcclTables tables, const NcclConstants& constants) {
  const char* const ways[] = {"tree", "ring"};
  const char* const protocols[] = {"ll", "ll128", "simple"};
  const char* const generations[] = {"volta", "ampere", "hopper", "blackwell"};
  const char* const scales[] = {"1", "2", "4"};
  for (const NcclConstant& constant : constants.values) {
    std::istringstream words(constant.name);
    std::string kind, a, b, c;
    words >> kind >> a >> b >> c;
    if (kind == "base") {
      tables.base_latency_us[place(ways, a)][place(protocols, b)] = constant.value;
    } else if (kind == "step") {
      if (b == "nvls" || b == "nvls_tree") continue;  // the tables have none
      NcclTables::Pair& pair = a == "nvlink" ? tables.nvlink_latency_us
                               : a == "pci"  ? tables.pci_latency_us
                                             : tables.network_latency_us;
      pair[place(ways, b)][place(protocols, c)] = constant.value;
    } else {
      NcclTables::ByNodes& table =
          kind == "tree-most" ? tables.tree_most_gbps : tables.tree_ll128_most_gbps;
      EXPECT_TRUE(kind == "tree-most" || kind == "tree-ll128-most") << kind;
      table[place(generations, a)][place(scales, b)] = constant.value;
    }
  }
  if (constants.net_overhead_ns)
    tables.latency.net_overhead_intel_us = *constants.net_overhead_ns / 1000.0;
  return tables;
}

// NCCL's own model with these constants expects of every ring what it takes, in the other unit, and so
// chooses the fastest. (The most of LL is one number for rings and trees, so that trees with LL may
// be off by some per cent.)
TEST(NcclRules, WithTheConstantsNcclItselfChoosesWhatTakesLeast) {
  std::mt19937_64 random(11);
  int exact = 0;
  for (const auto& [name, ranks] : cases) {
    const models::Cluster cluster = models::catalog_cluster(name);
    for (const Pace& pace : {Pace{}, Pace{5, 1, true, true}, Pace{1, 3, true, true}}) {
      const NcclPractice practice = practice_of(cluster, ranks, pace);
      const NcclConstants constants = nccl_constants(practice);
      const NcclModel model(replaced(nccl_tables("2.28"), constants), cluster, ranks);
      exact += constants.trees_fall_short ? 0 : 1;
      for (int trial = 0; trial < 200; ++trial) {
        const Bytes size{static_cast<double>(random_size(random))};
        std::optional<NcclWay> chosen;
        Seconds least{1e9};
        for (const NcclWay& way : nccl_ways(practice)) {
          if (way.algorithm == NcclWayAlgorithm::nvls ||
              way.algorithm == NcclWayAlgorithm::nvls_tree)
            continue;
          const Seconds time = *model.time(
              way.algorithm == NcclWayAlgorithm::ring ? NcclAlgorithm::ring : NcclAlgorithm::tree,
              way.protocol, size);
          if (way.algorithm == NcclWayAlgorithm::ring)
            EXPECT_NEAR(time / (constants.unit * taken(practice, way, size)), 1, 1e-9)
                << name << " " << ranks;
          if (chosen && time >= least) continue;
          chosen = way;
          least = time;
        }
        const Seconds best = std::min(least_taken(practice, size, NcclWayAlgorithm::ring),
                                      least_taken(practice, size, NcclWayAlgorithm::tree));
        if (!constants.trees_fall_short)
          EXPECT_LE(taken(practice, *chosen, size) / best, 1.03)
              << name << " " << ranks << " " << size.value();
      }
    }
  }
  EXPECT_GE(exact, 12);
}

}  // namespace
}  // namespace paceline::simulator
