// Tests: tests/simulator/threshold_fields_test.cc.
#include "simulator/planner/threshold_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"

namespace paceline::simulator {
namespace {

constexpr Seconds shortest_cycle{1e-6};
constexpr Seconds longest_cycle{60};

using Request = ThresholdRequest;
using models::Strategy;

template <std::optional<Bytes> Request::*field>
void read_size(Request& request, const std::string& text) {
  request.*field = parse_bytes(text);
}

template <std::optional<int> Request::*field, int most>
void read_count(Request& request, const std::string& text) {
  request.*field = static_cast<int>(parse_count(text, 1, most));
}

void read_cycle(Request& request, const std::string& text) {
  const Seconds cycle = parse_seconds(text);
  if (cycle > longest_cycle)
    throw InputError(fmt::format("a cycle of {}", to_text(cycle)),
                     fmt::format("choose at most {}", to_text(longest_cycle)));
  if (cycle > Seconds{0} && cycle < shortest_cycle)
    throw InputError(fmt::format("a cycle of {}", to_text(cycle)),
                     fmt::format("choose 0 for none, or at least {}", to_text(shortest_cycle)));
  request.cycle = cycle;
}

template <auto field>
bool has(const Request& request) {
  return static_cast<bool>(request.*field);
}

template <auto field>
void add_value(Document<Request>& document, std::string key) {
  document.add_if_any(std::move(key), field);
}

template <std::optional<int> Request::*field>
void add_count(Document<Request>& document, std::string key) {
  document.add_if_any(std::move(key), field, at_least(1));
}

// Whether plans depend on the threshold, as their strategy says or its way to travel.
template <bool (Strategy::*takes)() const>
bool taken(const Strategy& strategy) {
  return (strategy.*takes)();
}

template <bool models::WayTraits::*takes>
bool taken(const Strategy& strategy) {
  return strategy.traits().*takes;
}

bool has_cycle(const Strategy& strategy) {
  return strategy.other && strategy.other->dispatch.cycle > Seconds{0};
}

// Some names of strategies that take the field.
std::vector<std::string_view> takers(const ThresholdField& field) {
  constexpr std::size_t most = 4;
  std::vector<std::string_view> names;
  for (const auto& catalogue : models::strategy_catalogues()) {
    for (const Strategy& strategy : catalogue)
      if (field.is_taken(strategy) && names.size() < most) names.push_back(strategy.name);
  }
  return names;
}

}  // namespace

std::span<const ThresholdField> threshold_fields() {
  static const std::array fields = {
      ThresholdField{
          {{.name = "theta",
            .takes = "SIZE",
            .otherwise = "chosen",
            .group = travel_group,
            .help = "Fusion threshold on the wire: a bucket is sent once it holds this much"},
           read_size<&Request::fusion>,
           has<&Request::fusion>},
          taken<&Strategy::takes_fusion>,
          "theta_bytes",
          add_value<&Request::fusion>,
          [](const Request& r) { return "theta " + to_text_binary(*r.fusion); }},
      ThresholdField{{{.name = "eta",
                       .takes = "SIZE",
                       .otherwise = "chosen",
                       .group = travel_group,
                       .help = "Hybrid threshold on the wire: hierarchical up to it, ring above",
                       .is_expert = true},
                      read_size<&Request::hybrid>,
                      has<&Request::hybrid>},
                     taken<&Strategy::takes_hybrid>,
                     "eta_bytes",
                     add_value<&Request::hybrid>,
                     [](const Request& r) { return "eta " + to_text(*r.hybrid); }},
      ThresholdField{
          {{.name = "group",
            .takes = "K",
            .otherwise = "chosen",
            .group = travel_group,
            .help = "Group size k of hierarchical all-reduces, or shards of hsdp; must divide the "
                    "ranks",
            .python = "int",
            .is_expert = true},
           read_count<&Request::group_size, models::max_ranks>,
           has<&Request::group_size>},
          taken<&Strategy::takes_group>,
          "group",
          add_count<&Request::group_size>,
          [](const Request& r) { return fmt::format("k {}", *r.group_size); }},
      ThresholdField{
          {{.name = "reshard-after-forward",
            .takes = "yes|no",
            .otherwise = "yes",
            .group = travel_group,
            .help =
                "Whether ranks of fsdp and hsdp drop gathered parameters after the forward pass "
                "and gather them again for the backward pass; no takes memory in place of time",
            .python = "str",
            .is_expert = true},
           [](Request& r, const std::string& text) {
             constexpr std::array answers = {std::pair(true, std::string_view("yes")),
                                             std::pair(false, std::string_view("no"))};
             r.reshard = value_named(answers, "answer", text);
           },
           has<&Request::reshard>},
          [](const Strategy& s) { return s.sharded() != nullptr && s.sharded()->gathers(); },
          "reshard_after_forward",
          [](Document<Request>& document, std::string key) {
            document.add_if_any(std::move(key), [](const Request& r) { return r.reshard; });
          },
          [](const Request& r) {
            return std::string(*r.reshard ? "dropped after the forward pass"
                                          : "kept until the backward pass");
          }},
      ThresholdField{{{.name = "segments",
                       .takes = "S",
                       .otherwise = "chosen",
                       .group = travel_group,
                       .help = "Segments of a bucket that travel one behind the other in trees",
                       .python = "int",
                       .is_expert = true},
                      read_count<&Request::segments, models::max_segments>,
                      has<&Request::segments>},
                     taken<&Strategy::takes_segments>,
                     "segments",
                     add_count<&Request::segments>,
                     [](const Request& r) { return fmt::format("{} segments", *r.segments); }},
      ThresholdField{{{.name = "rings",
                       .takes = "C",
                       .otherwise = "4",
                       .group = travel_group,
                       .help = "Rings of multi-ring",
                       .python = "int",
                       .is_expert = true},
                      read_count<&Request::rings, models::max_ranks>,
                      has<&Request::rings>},
                     taken<&Strategy::takes_rings>,
                     "rings",
                     add_count<&Request::rings>,
                     [](const Request& r) { return fmt::format("{} rings", *r.rings); }},
      ThresholdField{{{.name = "servers",
                       .takes = "S",
                       .otherwise = "one for each node",
                       .group = travel_group,
                       .help = "Parameter servers among the ranks",
                       .python = "int",
                       .is_expert = true},
                      read_count<&Request::servers, models::max_ranks>,
                      has<&Request::servers>},
                     taken<&models::WayTraits::takes_servers>,
                     "servers",
                     add_count<&Request::servers>,
                     [](const Request& r) { return fmt::format("{} servers", *r.servers); }},
      ThresholdField{
          {{.name = "server-placement",
            .takes = "round-robin|balanced",
            .otherwise = "balanced",
            .group = travel_group,
            .help = "Which server holds a bucket: the next one, or the one with the "
                    "fewest bytes; or which rank owns a layer of k-fac: the next one, or "
                    "the one with the least to invert",
            .is_expert = true},
           [](Request& r, const std::string& text) {
             r.placement = models::server_placement_from_name(text);
           },
           has<&Request::placement>},
          taken<&models::WayTraits::takes_placement>,
          "server_placement",
          add_value<&Request::placement>,
          [](const Request& r) { return fmt::format("servers {}", name(*r.placement)); }},
      ThresholdField{{{.name = "streams",
                       .takes = "N",
                       .otherwise = "1",
                       .group = travel_group,
                       .help = "Buckets that may travel at the same time",
                       .python = "int",
                       .is_expert = true},
                      read_count<&Request::streams, most_streams>,
                      has<&Request::streams>},
                     taken<&Strategy::takes_streams>,
                     "streams",
                     add_count<&Request::streams>,
                     [](const Request& r) { return fmt::format("{} streams", *r.streams); }},
      ThresholdField{
          {{.name = "horovod",
            .takes = "VERSION",
            .otherwise = "0.20",
            .group = systems_group,
            .help = "Version of Horovod, whose cycle, theta and negotiation are then taken",
            .is_expert = true},
           [](Request& r, const std::string& text) { r.horovod = models::horovod_defaults(text); },
           has<&Request::horovod>},
          [](const Strategy& s) { return s.other && s.other->system == models::System::horovod; },
          "horovod_negotiation",
          [](Document<Request>& document, std::string key) {
            document.add_if_any(std::move(key), [](const Request& r) {
              return r.horovod ? std::optional(r.horovod->negotiation) : std::nullopt;
            });
          },
          [](const Request& r) {
            return fmt::format("Horovod's cycle {}", to_text(r.horovod->cycle));
          }},
      ThresholdField{{{.name = "cycle",
                       .takes = "TIME",
                       .otherwise = "5 ms",
                       .group = systems_group,
                       .help = "How often Horovod looks for gradients; 0: at once",
                       .is_expert = true},
                      read_cycle,
                      has<&Request::cycle>},
                     has_cycle,
                     "cycle_s",
                     add_value<&Request::cycle>,
                     [](const Request& r) { return "cycle " + to_text(*r.cycle); }},
      ThresholdField{
          {{.name = "partition",
            .takes = "SIZE",
            .otherwise = "the system's",
            .group = systems_group,
            .help =
                "Size on the wire of the parts into which ByteScheduler and its like cut tensors",
            .is_expert = true},
           read_size<&Request::partition>,
           has<&Request::partition>},
          [](const Strategy& s) { return s.other && s.other->partition > Bytes{0}; },
          "partition_bytes",
          add_value<&Request::partition>,
          [](const Request& r) { return "partition " + to_text(*r.partition); }},
      ThresholdField{
          {{.name = "credit",
            .takes = "SIZE",
            .otherwise = "the system's",
            .group = systems_group,
            .help = "Bytes of such parts that may be on their way; 0: one part at a time",
            .is_expert = true},
           read_size<&Request::credit>,
           has<&Request::credit>},
          [](const Strategy& s) { return s.other && s.other->dispatch.credit.has_value(); },
          "credit_bytes",
          add_value<&Request::credit>,
          [](const Request& r) { return "credit " + to_text(*r.credit); }},
      ThresholdField{
          {{.name = "server-machines",
            .takes = "N",
            .otherwise = "on the workers' machines",
            .group = systems_group,
            .help = "Machines of their own for the servers of byteps, kvstore and their like",
            .python = "int",
            .is_expert = true},
           read_count<&Request::server_machines, models::most_servers>,
           has<&Request::server_machines>},
          taken<&models::WayTraits::takes_machines>,
          "server_machines",
          add_count<&Request::server_machines>,
          [](const Request& r) {
            return fmt::format("{} machines of servers", *r.server_machines);
          }},
      ThresholdField{
          {{.name = "server-transport",
            .takes = "grpc|tcp|rdma",
            .otherwise = "the system's",
            .group = systems_group,
            .help = "What such servers and their workers speak",
            .is_expert = true},
           [](Request& r, const std::string& text) {
             r.transport = models::server_transport_from_name(text);
           },
           has<&Request::transport>},
          taken<&models::WayTraits::takes_machines>,
          "server_transport",
          add_value<&Request::transport>,
          [](const Request& r) { return fmt::format("servers over {}", name(*r.transport)); }},
      ThresholdField{
          {{.name = "factors-every",
            .takes = "N",
            .otherwise = "1",
            .group = systems_group,
            .help = "Iterations from one refresh of k-fac's factors and inverses to the next",
            .python = "int",
            .is_expert = true},
           read_count<&Request::factors_every, models::most_factors_every>,
           has<&Request::factors_every>},
          taken<&models::WayTraits::takes_factors>,
          "factors_every",
          add_count<&Request::factors_every>,
          [](const Request& r) { return fmt::format("factors every {}", *r.factors_every); }},
      ThresholdField{
          {{.name = "host-copies",
            .group = systems_group,
            .help = "Buckets go through the host, which sums them, as with MPI without GPUs",
            .python = "bool",
            .is_expert = true},
           [](Request& r, const std::string&) { r.through_host = true; },
           has<&Request::through_host>},
          taken<&Strategy::takes_host_copies>,
          "host_copies",
          [](Document<Request>& document, std::string key) {
            document.add_if_any(
                std::move(key),
                [](const Request& r) {
                  return r.through_host ? std::optional(true) : std::nullopt;
                },
                always(true));
          },
          [](const Request&) { return std::string("host copies"); }},
  };
  return fields;
}

void check_together(const ThresholdRequest& request) {
  if (request.server_machines && request.servers)
    throw InputError({"--server-machines"}, "servers are on machines of their own or of workers",
                     "leave --servers or --server-machines out");
}

std::vector<const ThresholdField*> given_fields(const ThresholdRequest& request) {
  std::vector<const ThresholdField*> given;
  for (const ThresholdField& field : threshold_fields())
    if (field.is_given(request)) given.push_back(&field);
  return given;
}

void check_taken(const ThresholdRequest& request,
                 const std::vector<const models::Strategy*>& strategies) {
  for (const ThresholdField* field : given_fields(request)) {
    if (std::any_of(strategies.begin(), strategies.end(),
                    [&](const Strategy* strategy) { return field->is_taken(*strategy); }))
      continue;
    throw InputError({field->option()},
                     strategies.size() == 1
                         ? fmt::format("{} does not take it", strategies.front()->name)
                         : fmt::format("none of the {} strategies takes it", strategies.size()),
                     fmt::format("leave it out, or choose a strategy such as {}",
                                 fmt::join(takers(*field), ", ")));
  }
}

std::vector<PartlyTaken> partly_taken(const ThresholdRequest& request,
                                      const std::vector<const models::Strategy*>& strategies) {
  std::vector<PartlyTaken> found;
  for (const ThresholdField* field : given_fields(request)) {
    PartlyTaken part{field, {}, {}};
    for (const Strategy* strategy : strategies)
      (field->is_taken(*strategy) ? part.taken_by : part.left_aside_by).push_back(strategy->name);
    if (!part.taken_by.empty() && !part.left_aside_by.empty()) found.push_back(std::move(part));
  }
  return found;
}

}  // namespace paceline::simulator
