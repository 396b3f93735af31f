// Tests: tests/models/plan_json_test.cc.
#include "models/plan/plan_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "models/base/error.h"
#include "models/base/json.h"
#include "models/base/json_reader.h"
#include "models/base/names.h"
#include "models/base/to_size.h"
#include "models/layout/rank_work.h"
#include "models/plan/strategy.h"
#include "models/plan/ways/documents.h"

namespace paceline::models {
namespace {

constexpr std::string_view schema = "paceline.plan/1";
constexpr const char* remedy = "give a plan as paceline predict --plan-out writes it";
constexpr std::size_t longest_name = 256;
constexpr std::size_t most_gradients = 100'000;
constexpr std::int64_t most_elements = std::int64_t{1} << 40;  // of a gradient, as in work.cc
constexpr int most_streams = 1024;
constexpr double longest_cycle_s = 3600;
constexpr int most_batches = 1 << 20;

// What another system adds; documents of our own plans have no such keys.
void add_dispatch(const Dispatch& dispatch, Json& json) {
  if (dispatch == Dispatch{}) return;
  json["dispatch"] = {{"cycle_s", dispatch.cycle.value()},
                      {"negotiation", name(dispatch.negotiation)},
                      {"through_host", dispatch.through_host}};
  if (dispatch.credit) json["dispatch"]["credit_bytes"] = dispatch.credit->value();
}

Dispatch read_dispatch(const JsonValue& entry) {
  entry.check_keys({"cycle_s", "negotiation", "through_host", "credit_bytes"});
  Dispatch dispatch;
  dispatch.cycle = Seconds{entry.at("cycle_s").number(0, longest_cycle_s)};
  dispatch.negotiation = entry.at("negotiation").named([](const std::string& text) {
    return negotiation_from_name(text);
  });
  dispatch.through_host = entry.at("through_host").flag();
  if (entry.has("credit_bytes"))
    dispatch.credit =
        Bytes{entry.at("credit_bytes").number(0, static_cast<double>(most_elements) * 4)};
  return dispatch;
}

// A plan whose ranks are data-parallel alone has no such key.
Json layout_json(const Layout& layout) {
  return {{"tensor", layout.tensor},
          {"sequence_parallel", layout.sequence_parallel},
          {"tensor_overlap", layout.tensor_overlap},
          {"context", layout.context},
          {"expert", layout.expert},
          {"tokens_once", layout.tokens_once},
          {"pipeline", layout.pipeline},
          {"chunks", layout.chunks},
          {"schedule", name_in(pipeline_schedules, layout.schedule)}};
}

Layout read_layout(const JsonValue& entry) {
  entry.check_keys({"tensor", "sequence_parallel", "tensor_overlap", "context", "expert",
                    "tokens_once", "pipeline", "chunks", "schedule"});
  Layout layout;
  layout.tensor = entry.at("tensor").count(1, most_of_an_axis);
  layout.sequence_parallel = entry.at("sequence_parallel").flag();
  if (entry.has("tensor_overlap")) layout.tensor_overlap = entry.at("tensor_overlap").flag();
  layout.context = entry.at("context").count(1, most_of_an_axis);
  if (entry.has("tokens_once")) layout.tokens_once = entry.at("tokens_once").flag();
  if (entry.has("expert")) layout.expert = entry.at("expert").count(1, most_of_an_axis);
  layout.pipeline = entry.at("pipeline").count(1, most_of_an_axis);
  layout.chunks = entry.at("chunks").count(1, most_of_an_axis);
  layout.schedule = entry.at("schedule").named([](const std::string& text) {
    return value_named(pipeline_schedules, "schedule", text);
  });
  return layout;
}

Json made_for_json(const MadeFor& job) {
  Json json = {{"cluster", job.cluster},
               {"cluster_digest", job.cluster_digest},
               {"batch_per_rank", job.batch_per_rank},
               {"accumulate", job.accumulate},
               {"precision", name(job.precision)}};
  if (job.sequence > 0) json["sequence"] = job.sequence;
  if (job.recompute != Recompute::none) json["recompute"] = name(job.recompute);
  if (job.optimizer_on_host) json["offload"] = offloaded_optimizer;
  return json;
}

MadeFor read_made_for(const JsonValue& entry) {
  entry.check_keys({"cluster", "cluster_digest", "batch_per_rank", "accumulate", "precision",
                    "sequence", "recompute", "offload"});
  MadeFor job;
  job.cluster = entry.at("cluster").text(longest_name);
  job.cluster_digest = entry.at("cluster_digest").text(longest_name);
  job.batch_per_rank = entry.at("batch_per_rank").count(1, most_batches);
  job.accumulate = entry.at("accumulate").count(1, most_batches);
  job.precision = entry.at("precision").named([](const std::string& text) {
    return precision_from_name(text);
  });
  if (entry.has("sequence")) job.sequence = entry.at("sequence").whole(1, most_elements);
  if (entry.has("recompute"))
    job.recompute = entry.at("recompute").named([](const std::string& text) {
      return recompute_from_name(text);
    });
  if (entry.has("offload"))
    job.optimizer_on_host = entry.at("offload").named([](const std::string& text) {
      if (text != offloaded_optimizer)
        throw unknown_name("part", text, {std::string(offloaded_optimizer)});
      return true;
    });
  return job;
}

// The part that a bucket holds of its one gradient. Parts of a gradient stand one behind the other:
// one that does not begin with element 0 goes on with the gradient of the bucket before.
void read_part(const JsonValue& part, PlanDocument& document, std::int64_t& parted,
               Bucket& bucket) {
  part.check_keys({"first_element", "elements"});
  if (bucket.gradient_count != 1)
    part.fail(fmt::format("a part of {} gradients", bucket.gradient_count),
              "give a part of one gradient");
  const PlannedGradient gradient = document.gradients.back();
  bucket.first_element = part.at("first_element").whole(0, gradient.elements - 1);
  bucket.elements = part.at("elements").whole(1, gradient.elements - bucket.first_element);
  if (bucket.first_element == 0) return;
  document.gradients.pop_back();
  --bucket.first_gradient;
  if (bucket.first_element != parted || document.gradients.empty() ||
      document.gradients.back() != gradient)
    part.at("first_element")
        .fail(fmt::format("the part of {} begins with element {}", in_quotes(gradient.name),
                          bucket.first_element),
              "list the parts of a gradient one behind the other, the first from element 0");
}

// `parted` is the end of the part that the bucket before it holds of its gradient; 0 if it holds all.
Bucket read_bucket(const JsonValue& entry, int all_reduces, PlanDocument& document,
                   std::int64_t& parted) {
  entry.check_keys({"all_reduce", "gradients", "part", "wait_s"});
  Bucket bucket{.first_gradient = static_cast<int>(document.gradients.size())};
  bucket.schedule = entry.at("all_reduce").count(0, all_reduces - 1);
  const JsonValue gradients = entry.at("gradients");
  gradients.for_each(
      [&](const JsonValue& value) {
        value.check_keys({"name", "elements"});
        document.gradients.push_back(
            {value.at("name").text(longest_name), value.at("elements").whole(1, most_elements)});
        bucket.elements += document.gradients.back().elements;
        ++bucket.gradient_count;
      },
      most_gradients - document.gradients.size());
  if (bucket.gradient_count == 0)
    gradients.fail("this bucket has no gradient", "leave the bucket out");
  if (entry.has("wait_s")) bucket.wait = Seconds{entry.at("wait_s").number(0, longest_cycle_s)};
  if (entry.has("part")) read_part(entry.at("part"), document, parted, bucket);
  if (parted > 0 && bucket.first_element == 0)
    entry.fail("the gradient of the bucket before it is not whole", "add its other parts");
  const std::int64_t end = bucket.first_element + bucket.elements;
  const bool is_whole = !entry.has("part") || end == document.gradients.back().elements;
  parted = is_whole ? 0 : end;
  return bucket;
}

void check_all_are_used(const JsonValue& all_reduces, const Plan& plan) {
  std::vector<bool> used(plan.schedules.size());
  for (const Bucket& bucket : plan.buckets) used[to_size(bucket.schedule)] = true;
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused == used.end()) return;
  all_reduces.fail(fmt::format("no bucket uses entry {} (counted from 0)", unused - used.begin()),
                   "leave it out");
}

// The gradients of a rank.
std::vector<Gradient> planned_gradients(const NetworkWork& network, const Layout& layout) {
  return layout == Layout{} ? network.gradients : rank_work(network, layout).network.gradients;
}

}  // namespace

PlanDocument plan_document(const Plan& plan, const NetworkWork& network,
                           std::optional<MadeFor> made_for) {
  PlanDocument document{
      .network = network.name, .gradients = {}, .plan = plan, .made_for = std::move(made_for)};
  for (const Gradient& gradient : planned_gradients(network, plan.layout))
    document.gradients.push_back({gradient.name, gradient.elements});
  std::size_t planned = 0;
  for (const Bucket& bucket : plan.buckets)
    planned += bucket.first_element > 0 ? 0 : to_size(bucket.gradient_count);
  PACELINE_ASSERT(planned == document.gradients.size(), "the plan is for this network");
  return document;
}

Json json_of(const PlanDocument& document) {
  const Plan& plan = document.plan;
  Json json = {
      {"schema", schema},        {"network", document.network},  {"strategy", plan.strategy},
      {"ranks", plan.ranks},     {"wire_type", name(plan.wire)}, {"overlap", name(plan.overlap)},
      {"streams", plan.streams}, {"all_reduces", Json::array()}, {"buckets", Json::array()}};
  add_dispatch(plan.dispatch, json);
  if (plan.layout != Layout{}) json["layout"] = layout_json(plan.layout);
  if (document.made_for) json["made_for"] = made_for_json(*document.made_for);
  for (const PlannedSchedule& planned : plan.schedules)
    json["all_reduces"].push_back(document_of(planned).json(planned));
  for (const Bucket& bucket : plan.buckets) {
    Json gradients = Json::array();
    for (int i = 0; i < bucket.gradient_count; ++i) {
      const PlannedGradient& gradient = document.gradients[to_size(bucket.first_gradient + i)];
      gradients.push_back({{"name", gradient.name}, {"elements", gradient.elements}});
    }
    const std::int64_t whole = document.gradients[to_size(bucket.first_gradient)].elements;
    Json entry = {{"all_reduce", bucket.schedule}, {"gradients", std::move(gradients)}};
    if (bucket.gradient_count == 1 && bucket.elements < whole)
      entry["part"] = {{"first_element", bucket.first_element}, {"elements", bucket.elements}};
    if (bucket.wait > Seconds{0}) entry["wait_s"] = bucket.wait.value();
    json["buckets"].push_back(std::move(entry));
  }
  return json;
}

std::string to_json(const PlanDocument& document) {
  return json_of(document).indented() + "\n";
}

PlanDocument parse_plan(std::string_view text, const std::string& file) {
  return read_plan(JsonDocument(text, file, "the plan", remedy).root());
}

PlanDocument read_plan(const JsonValue& root) {
  root.check_schema(schema, "plan");
  root.check_keys({"schema", "network", "strategy", "ranks", "wire_type", "overlap", "streams",
                   "all_reduces", "buckets", "dispatch", "made_for", "layout"});
  PlanDocument document;
  document.network = root.at("network").text(longest_name);
  Plan& plan = document.plan;
  const Strategy& chosen =
      *root.at("strategy").named([](const std::string& entry) { return &strategy(entry); });
  plan.strategy = chosen.name;
  plan.ranks = root.at("ranks").count(1, max_ranks);
  plan.wire = root.at("wire_type").named([](const std::string& entry) {
    return wire_type_from_name(entry);
  });
  plan.overlap =
      root.at("overlap").named([](const std::string& entry) { return overlap_from_name(entry); });
  const JsonValue all_reduces = root.at("all_reduces");
  all_reduces.for_each(
      [&](const JsonValue& entry) {
        const WayDocument& way = document_of(entry);
        const PlannedSchedule planned = way.read(entry, chosen.name, plan.ranks);
        if (!chosen.allows(planned)) {
          // Servers and owners are named after the strategy, and that would explain nothing.
          const std::string what =
              planned.algorithm == chosen.name ? in_quotes(way.key) : planned.algorithm;
          entry.at(way.key).fail(fmt::format("strategy {} does not use {}", chosen.name, what),
                                 "write " + chosen.allowed());
        }
        plan.schedules.push_back(planned);
      },
      most_gradients);
  if (root.has("dispatch")) plan.dispatch = read_dispatch(root.at("dispatch"));
  if (root.has("layout")) plan.layout = read_layout(root.at("layout"));
  if (root.has("made_for")) document.made_for = read_made_for(root.at("made_for"));
  std::int64_t parted = 0;
  root.at("buckets").for_each(
      [&](const JsonValue& entry) {
        plan.buckets.push_back(
            read_bucket(entry, static_cast<int>(plan.schedules.size()), document, parted));
      },
      most_gradients);
  if (parted > 0)
    root.at("buckets").fail("the gradient of the last bucket is not whole", "add its other parts");
  const auto buckets = static_cast<int>(plan.buckets.size());
  plan.streams = root.at("streams").count(1, std::max(most_streams, buckets));
  check_all_are_used(all_reduces, plan);
  for (const PlannedSchedule& schedule : plan.schedules)
    if (const auto check = document_of(schedule).check) check(root, plan);
  return document;
}

void check_plan(const PlanDocument& document, const std::string& file, const NetworkWork& network,
                int ranks) {
  const auto fail = [&](const std::string& problem, const std::string& what_to_do) {
    throw InputError({file}, problem, what_to_do);
  };
  if (document.network != network.name)
    fail(fmt::format("the plan is for network {}, not for {}", in_quotes(document.network),
                     network.name),
         "give a plan for this network, or the plan's network as --model");
  if (document.plan.all_ranks() != ranks)
    fail(fmt::format("the plan is for {} ranks, not for {}", document.plan.all_ranks(), ranks),
         "give a plan for this many ranks (paceline predict --ranks ... --plan-out)");
  const std::vector<Gradient> gradients = planned_gradients(network, document.plan.layout);
  const std::string order = fmt::format("list the {} gradients of {}, each once, in backward order",
                                        gradients.size(), network.name);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < document.gradients.size(); ++i) {
    const PlannedGradient& planned = document.gradients[i];
    if (!seen.insert(planned.name).second)
      fail(fmt::format("gradient {} is in the buckets twice", in_quotes(planned.name)), order);
    if (i >= gradients.size())
      fail(fmt::format("gradient {} is none of {}'s", in_quotes(planned.name), network.name),
           order);
    const Gradient& expected = gradients[i];
    if (planned.name != expected.name)
      fail(fmt::format("gradient {} of the buckets is {}, but {} of {} is {}", i + 1,
                       in_quotes(planned.name), i + 1, network.name, expected.name),
           order);
    if (planned.elements != expected.elements)
      fail(fmt::format("gradient {} has {} elements in the plan, and {} in {}", planned.name,
                       planned.elements, expected.elements, network.name),
           "give a plan for this network (and for this --scale-gradients)");
  }
  if (document.gradients.size() < gradients.size())
    fail(fmt::format("the buckets end before gradient {} of {}, {}", document.gradients.size() + 1,
                     network.name, gradients[document.gradients.size()].name),
         order);
}

}  // namespace paceline::models
