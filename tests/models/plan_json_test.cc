// Plans as documents: every plan survives the round trip, and every fault is one InputError on one
// line that says where it is.
#include "models/plan/plan_json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>
#include <string>

#include "models/base/error.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "tests/support/error_of.h"
#include "tests/support/golden.h"

namespace paceline::models {
namespace {

NetworkWork network_of(const std::vector<std::int64_t>& elements) {
  NetworkWork network;
  network.name = "chain";
  for (std::size_t i = 0; i < elements.size(); ++i)
    network.gradients.push_back({"layer" + std::to_string(i), elements[i], static_cast<int>(i)});
  return network;
}

// A plan of four gradients in two buckets, and its network.
NetworkWork small_network() {
  return network_of({4, 7, 10, 3});
}

std::string small_plan(const std::string& strategy_name = "hybrid") {
  const NetworkWork network = small_network();
  const Plan plan = make_plan(strategy(strategy_name), network.gradients, 8, WireType::fp16,
                              {.fusion = Bytes{30}, .hybrid = Bytes{25}, .group_size = 4});
  return to_json(plan_document(plan, network));
}

// The error of the small plan with its first `part` replaced.
std::string error_with(const std::string& part, const std::string& replacement,
                       const std::string& strategy_name = "hybrid") {
  std::string text = small_plan(strategy_name);
  const std::size_t at = text.find(part);
  if (at == std::string::npos) return "the plan has no " + part;
  text.replace(at, part.size(), replacement);
  return test::error_of([&] { return parse_plan(text, "p.json"); });
}

RC_GTEST_PROP(PlanDocument, SurvivesTheRoundTrip, ()) {
  const auto catalogue = strategy_catalogue();
  const int place = *rc::gen::inRange<int>(0, static_cast<int>(catalogue.size()) + 1);
  const Strategy& chosen = place < static_cast<int>(catalogue.size())
                               ? catalogue[static_cast<std::size_t>(place)]
                               : strategy("k-fac");
  std::vector<std::int64_t> elements(static_cast<std::size_t>(*rc::gen::inRange(1, 30)));
  for (auto& count : elements) count = *rc::gen::inRange(1, 5000);
  const NetworkWork network = network_of(elements);
  const int group_size = *rc::gen::inRange(1, 5);
  const int ranks = group_size * *rc::gen::inRange(1, 20);
  const Thresholds thresholds{
      .fusion = Bytes(*rc::gen::inRange(0, 20000)),
      .hybrid = Bytes(*rc::gen::inRange(0, 20000)),
      .group_size = group_size,
      .segments = *rc::gen::inRange(0, 20),
      .servers = *rc::gen::inRange(1, ranks + 1),
      .placement = *rc::gen::element(ServerPlacement::balanced, ServerPlacement::round_robin),
      .streams = *rc::gen::inRange(1, 5),
      .factors_every = *rc::gen::inRange(1, 5)};
  const WireType wire = *rc::gen::element(WireType::fp32, WireType::fp16, WireType::bf16);
  Plan plan = make_plan(chosen, network.gradients, ranks, wire, thresholds);
  plan.overlap = *rc::gen::element(Overlap::wait_free, Overlap::none, Overlap::double_buffered,
                                   Overlap::priority);
  if (!chosen.traits().may_overlap_iterations)
    plan.overlap = *rc::gen::element(Overlap::wait_free, Overlap::none);
  std::optional<MadeFor> made_for;
  if (*rc::gen::arbitrary<bool>())
    made_for = MadeFor{.cluster = "a cluster",
                       .cluster_digest = "0123456789abcdef",
                       .batch_per_rank = *rc::gen::inRange(1, 1 << 20),
                       .accumulate = *rc::gen::inRange(1, 1 << 16),
                       .precision = *rc::gen::element(Precision::fp32, Precision::mixed),
                       .sequence = *rc::gen::inRange(0, 4096),
                       .optimizer_on_host = *rc::gen::arbitrary<bool>()};
  const PlanDocument document = plan_document(plan, network, made_for);
  const std::string text = to_json(document);
  const PlanDocument read = parse_plan(text, "p.json");
  RC_ASSERT(read == document);
  RC_ASSERT(read.plan == plan);
  RC_ASSERT(to_json(read) == text);
  check_plan(read, "p.json", network, ranks);
  // The schedules, which are built anew, have the same steps.
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    if (!plan.schedules[i].has_steps()) continue;
    RC_ASSERT(read.plan.schedules[i].schedule().description() ==
              plan.schedules[i].schedule().description());
    RC_ASSERT(read.plan.schedules[i].schedule().steps() == plan.schedules[i].schedule().steps());
  }
}

// Every part of a plan counts when plans are compared: the property above rests on that.
TEST(PlanDocument, DiffersWhereAnyOfItsPartsDoes) {
  const PlanDocument document = parse_plan(small_plan(), "p.json");
  const auto differs = [&](auto change) {
    PlanDocument changed = document;
    change(changed);
    return changed != document;
  };
  EXPECT_FALSE(differs([](PlanDocument&) {}));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.network = "x"; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.gradients[1].name = "x"; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { ++d.gradients[1].elements; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.plan.strategy = "ring"; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { ++d.plan.ranks; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.plan.wire = WireType::fp32; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.plan.overlap = Overlap::none; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { ++d.plan.streams; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.plan.schedules[0].algorithm = "x"; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { ++d.plan.schedules[0].options.group_size; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.plan.schedules[0].way = Library::nccl; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.plan.buckets[1].schedule ^= 1; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { --d.plan.buckets[1].gradient_count; }));
  EXPECT_TRUE(differs([](PlanDocument& d) { d.made_for.emplace(); }));
}

TEST(PlanDocument, IsWrittenAsFormatsSays) {
  test::expect_golden("plan_hybrid.json", small_plan());
  test::expect_golden("plan_parameter_server.json", small_plan("parameter-server"));
  test::expect_golden("plan_nccl.json", small_plan("nccl"));
}

TEST(PlanDocument, NamesWhatItCannotBe) {
  EXPECT_EQ(error_with("paceline.plan/1", "paceline.plan/2"),
            "p.json: schema: 'paceline.plan/2' is not what this version reads; give a plan of "
            "schema paceline.plan/1");
  EXPECT_EQ(error_with("\"hybrid\"", "\"hybird\""),
            "p.json: strategy: unknown strategy 'hybird'; did you mean 'hybrid'?");
  EXPECT_EQ(error_with("\"hierarchical\"", "\"hierarchial\""),
            "p.json: all_reduces[1].algorithm: unknown schedule 'hierarchial'; did you mean "
            "'hierarchical'?");
  EXPECT_EQ(error_with("\"hierarchical\"", "\"torus-2d\""),
            "p.json: all_reduces[1].algorithm: strategy hybrid does not use torus-2d; write "
            "hierarchical or ring");
  EXPECT_EQ(
      error_with("\"group\": 4", "\"group\": 3"),
      "p.json: all_reduces[1]: group size 3 does not divide 8 ranks; choose one of 1, 2, 4, 8");
  EXPECT_EQ(error_with("\"group\": 4", "\"group\": 0"),
            "p.json: all_reduces[1].group: 0 is not a whole number from 1 to 1048576");
  EXPECT_EQ(error_with("\"group\": 4", "\"segments\": 4"),
            "p.json: all_reduces[1]: unknown key 'segments'; known: algorithm, group");
  EXPECT_EQ(error_with("\"ranks\": 8", "\"ranks\": 0"),
            "p.json: ranks: 0 is not a whole number from 1 to 1048576");
  EXPECT_EQ(error_with("\"ranks\": 8", "\"ranks\": 8.5"),
            "p.json: ranks: 8.5 is not a whole number from 1 to 1048576");
  EXPECT_EQ(error_with("\"fp16\"", "\"fp8\""),
            "p.json: wire_type: unknown wire type 'fp8'; known: fp32, fp16, bf16");
  EXPECT_EQ(error_with("\"wait-free\"", "\"waitfree\""),
            "p.json: overlap: unknown overlap policy 'waitfree'; did you mean 'wait-free'?");
  EXPECT_EQ(error_with("\"streams\": 1", "\"streams\": 5000"),
            "p.json: streams: 5000 is not a whole number from 1 to 1024");
  EXPECT_EQ(error_with("\"streams\": 1,", ""),
            "p.json: the plan: 'streams' is missing; add \"streams\"");
  EXPECT_EQ(error_with("\"streams\"", "\"stream\""),
            "p.json: the plan: unknown key 'stream'; did you mean 'streams'?");
  EXPECT_EQ(error_with("\"elements\": 4", "\"elements\": 0"),
            "p.json: buckets[0].gradients[0].elements: 0 is not a whole number from 1 to "
            "1099511627776");
  EXPECT_EQ(error_with("\"all_reduce\": 0", "\"all_reduce\": 2"),
            "p.json: buckets[0].all_reduce: 2 is not a whole number from 0 to 1");
  EXPECT_EQ(error_with("\"all_reduce\": 1", "\"all_reduce\": 0"),
            "p.json: all_reduces: no bucket uses entry 1 (counted from 0); leave it out");
  EXPECT_EQ(error_with("{", ""),
            "p.json:2:11: this is not JSON; give a plan as paceline predict --plan-out writes it");
  EXPECT_EQ(test::error_of([] { return parse_plan("[]", "p.json"); }),
            "p.json: the plan: this is no object; write {...}");
  EXPECT_EQ(error_with("\"first_server\": 0", "\"first_server\": 8", "parameter-server"),
            "p.json: all_reduces[0].first_server: 8 is not a whole number from 0 to 7");
  EXPECT_EQ(error_with("\"servers\": 1", "\"servers\": 9", "parameter-server"),
            "p.json: all_reduces[0]: 9 servers among 8 ranks; choose 1 to 8");
  EXPECT_EQ(error_with("\"library\": \"nccl\"", "\"library\": \"open-mpi\"", "nccl"),
            "p.json: all_reduces[0].library: strategy nccl does not use open-mpi; write "
            "{\"library\": \"nccl\"}");
  EXPECT_EQ(
      error_with("\"library\": \"nccl\"", "\"algorithm\": \"ring\"", "nccl"),
      "p.json: all_reduces[0].algorithm: strategy nccl does not use ring; write {\"library\": "
      "\"nccl\"}");
}

// K-FAC sends all gradients in one bucket, to owners.
TEST(PlanDocument, NamesWhatKfacCannotBe) {
  EXPECT_EQ(error_with("\"balanced\"", "\"balancd\"", "k-fac"),
            "p.json: all_reduces[0].owners: unknown placement 'balancd'; did you mean 'balanced'?");
  EXPECT_EQ(error_with("\"factors_every\": 1", "\"factors_every\": 0", "k-fac"),
            "p.json: all_reduces[0].factors_every: 0 is not a whole number from 1 to 1000000");
  EXPECT_EQ(error_with("\"factors_every\": 1", "\"factors\": 1", "k-fac"),
            "p.json: all_reduces[0]: unknown key 'factors'; did you mean 'factors_every'?");
  EXPECT_EQ(error_with("\"k-fac\"", "\"ring\"", "k-fac"),
            "p.json: all_reduces[0].owners: strategy ring does not use 'owners'; write ring");
  EXPECT_EQ(error_with("\"wait-free\"", "\"priority\"", "k-fac"),
            "p.json: overlap: k-fac has no overlap priority; write wait-free or none");
  EXPECT_EQ(error_with("\"streams\": 1", "\"streams\": 2", "k-fac"),
            "p.json: streams: 2 streams of k-fac; write 1");
  EXPECT_EQ(error_with("\"gradients\": [", "\"wait_s\": 1, \"gradients\": [", "k-fac"),
            "p.json: the plan: k-fac has no dispatch, and its bucket no wait; leave them out");
}

TEST(PlanDocument, WithABucketOfNothingIsRefused) {
  std::string text = small_plan();
  const std::size_t from = text.find('[', text.find("\"gradients\""));
  text.replace(from, text.find(']', from) - from + 1, "[]");
  EXPECT_EQ(test::error_of([&] { return parse_plan(text, "p.json"); }),
            "p.json: buckets[0].gradients: this bucket has no gradient; leave the bucket out");
}

// A document that does not fit a network is refused by the first gradient that differs.
TEST(PlanDocument, FitsOnlyItsNetworkAndRanks) {
  const NetworkWork network = small_network();
  const PlanDocument document = parse_plan(small_plan(), "p.json");
  check_plan(document, "p.json", network, 8);
  const auto error = [&](auto change, int ranks = 8) {
    PlanDocument changed = document;
    change(changed);
    return test::error_of([&] { return check_plan(changed, "p.json", network, ranks), 0; });
  };
  EXPECT_EQ(error([](PlanDocument& d) { d.network = "vgg16"; }),
            "p.json: the plan is for network 'vgg16', not for chain; give a plan for this network, "
            "or the plan's network as --model");
  EXPECT_EQ(
      error([](PlanDocument&) {}, 16),
      "p.json: the plan is for 8 ranks, not for 16; give a plan for this many ranks (paceline "
      "predict --ranks ... --plan-out)");
  EXPECT_EQ(error([](PlanDocument& d) { d.gradients[1].elements = 8; }),
            "p.json: gradient layer1 has 8 elements in the plan, and 7 in chain; give a plan for "
            "this network (and for this --scale-gradients)");
  EXPECT_EQ(error([](PlanDocument& d) { std::swap(d.gradients[1], d.gradients[2]); }),
            "p.json: gradient 2 of the buckets is 'layer2', but 2 of chain is layer1; list the 4 "
            "gradients of chain, each once, in backward order");
  EXPECT_EQ(
      error([](PlanDocument& d) { d.gradients[3] = d.gradients[2]; }),
      "p.json: gradient 'layer2' is in the buckets twice; list the 4 gradients of chain, each "
      "once, in backward order");
  EXPECT_EQ(error([](PlanDocument& d) { d.gradients.pop_back(); }),
            "p.json: the buckets end before gradient 4 of chain, layer3; list the 4 gradients of "
            "chain, each once, in backward order");
  EXPECT_EQ(error([](PlanDocument& d) {
              d.gradients.push_back({"layer4", 1});
            }),
            "p.json: gradient 'layer4' is none of chain's; list the 4 gradients of chain, each "
            "once, in backward order");
}

// Damage anywhere in a document is found, or makes another document; nothing else happens.
TEST(PlanDocument, OfDamagedBytesIsReadOrRefusedInOneLine) {
  std::mt19937 random(7);
  for (const char* name : {"hybrid", "parameter-server", "nccl", "double-binary-tree", "k-fac"}) {
    const std::string text = small_plan(name);
    for (int trial = 0; trial < 500; ++trial) {
      std::string damaged = text;
      const std::size_t at = random() % damaged.size();
      if (trial % 3 == 0)
        damaged.resize(at);
      else if (trial % 3 == 1)
        damaged[at] = static_cast<char>(random());
      else
        damaged.erase(at, 1 + random() % 20);
      const std::string error = test::error_of([&] { return parse_plan(damaged, "p.json"); });
      EXPECT_EQ(error.find('\n'), std::string::npos) << error;
      if (trial % 3 == 0 && at + 1 < text.size()) EXPECT_NE(error, "no error") << damaged;
    }
  }
}

}  // namespace
}  // namespace paceline::models
