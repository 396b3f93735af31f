// Tests: tests/simulator/threshold_fields_test.cc.
#include "simulator/planner/threshold_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"
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

template <std::optional<Bytes> Request::*field>
Json bytes_of(const Request& request) {
  return (request.*field)->value();
}

template <std::optional<int> Request::*field>
Json count_of(const Request& request) {
  return *(request.*field);
}

template <auto field>
Json name_of(const Request& request) {
  return name(*(request.*field));
}

bool takes_theta(const Strategy& strategy) {
  return strategy.fusion != models::Fusion::never;
}

bool takes_eta(const Strategy& strategy) {
  return strategy.hybrid() != nullptr;
}

bool is_served(const Strategy& strategy) {
  return strategy.served() != nullptr;
}

// A library runs one collective of a communicator at a time, and all buckets that go to servers are
// in flight at once.
bool takes_streams(const Strategy& strategy) {
  return !strategy.library() && !strategy.other && strategy.on_servers() == nullptr;
}

bool has_cycle(const Strategy& strategy) {
  return strategy.other && strategy.other->dispatch.cycle > Seconds{0};
}

// A system that goes through the host in any case is not changed by it.
bool takes_host_copies(const Strategy& strategy) {
  const bool does_anyway = strategy.other && strategy.other->dispatch.through_host;
  return !does_anyway && !strategy.library() && strategy.on_servers() == nullptr &&
         strategy.served() == nullptr && !strategy.preconditions();
}

constexpr std::array fields = {
    ThresholdField{.name = "theta",
                   .read = read_size<&Request::fusion>,
                   .is_given = has<&Request::fusion>,
                   .is_taken = takes_theta,
                   .key = "theta_bytes",
                   .value = bytes_of<&Request::fusion>,
                   .words = [](const Request& r) { return "theta " + to_text_binary(*r.fusion); }},
    ThresholdField{.name = "eta",
                   .read = read_size<&Request::hybrid>,
                   .is_given = has<&Request::hybrid>,
                   .is_taken = takes_eta,
                   .key = "eta_bytes",
                   .value = bytes_of<&Request::hybrid>,
                   .words = [](const Request& r) { return "eta " + to_text(*r.hybrid); }},
    ThresholdField{.name = "group",
                   .read = read_count<&Request::group_size, models::max_ranks>,
                   .is_given = has<&Request::group_size>,
                   .is_taken = [](const Strategy& s) { return s.takes_group(); },
                   .key = "group",
                   .value = count_of<&Request::group_size>,
                   .words = [](const Request& r) { return fmt::format("k {}", *r.group_size); }},
    ThresholdField{
        .name = "segments",
        .read = read_count<&Request::segments, models::max_segments>,
        .is_given = has<&Request::segments>,
        .is_taken = [](const Strategy& s) { return s.takes_segments(); },
        .key = "segments",
        .value = count_of<&Request::segments>,
        .words = [](const Request& r) { return fmt::format("{} segments", *r.segments); }},
    ThresholdField{.name = "rings",
                   .read = read_count<&Request::rings, models::max_ranks>,
                   .is_given = has<&Request::rings>,
                   .is_taken = [](const Strategy& s) { return s.takes_rings(); },
                   .key = "rings",
                   .value = count_of<&Request::rings>,
                   .words = [](const Request& r) { return fmt::format("{} rings", *r.rings); }},
    ThresholdField{
        .name = "servers",
        .read = read_count<&Request::servers, models::max_ranks>,
        .is_given = has<&Request::servers>,
        .is_taken = [](const Strategy& s) { return s.on_servers() != nullptr || is_served(s); },
        .key = "servers",
        .value = count_of<&Request::servers>,
        .words = [](const Request& r) { return fmt::format("{} servers", *r.servers); }},
    ThresholdField{
        .name = "server-placement",
        .read =
            [](Request& r, const std::string& text) {
              r.placement = models::server_placement_from_name(text);
            },
        .is_given = has<&Request::placement>,
        .is_taken =
            [](const Strategy& s) { return s.on_servers() != nullptr || s.preconditions(); },
        .key = "server_placement",
        .value = name_of<&Request::placement>,
        .words = [](const Request& r) { return fmt::format("servers {}", name(*r.placement)); }},
    ThresholdField{.name = "streams",
                   .read = read_count<&Request::streams, most_streams>,
                   .is_given = has<&Request::streams>,
                   .is_taken = takes_streams,
                   .key = "streams",
                   .value = count_of<&Request::streams>,
                   .words = [](const Request& r) { return fmt::format("{} streams", *r.streams); }},
    ThresholdField{
        .name = "horovod",
        .read = [](Request& r,
                   const std::string& text) { r.horovod = models::horovod_defaults(text); },
        .is_given = has<&Request::horovod>,
        .is_taken =
            [](const Strategy& s) { return s.other && s.other->system == models::System::horovod; },
        .key = "horovod_negotiation",
        .value = [](const Request& r) -> Json { return name(r.horovod->negotiation); },
        .words =
            [](const Request& r) {
              return fmt::format("Horovod's cycle {}", to_text(r.horovod->cycle));
            }},
    ThresholdField{.name = "cycle",
                   .read = read_cycle,
                   .is_given = has<&Request::cycle>,
                   .is_taken = has_cycle,
                   .key = "cycle_s",
                   .value = [](const Request& r) -> Json { return r.cycle->value(); },
                   .words = [](const Request& r) { return "cycle " + to_text(*r.cycle); }},
    ThresholdField{
        .name = "partition",
        .read = read_size<&Request::partition>,
        .is_given = has<&Request::partition>,
        .is_taken = [](const Strategy& s) { return s.other && s.other->partition > Bytes{0}; },
        .key = "partition_bytes",
        .value = bytes_of<&Request::partition>,
        .words = [](const Request& r) { return "partition " + to_text(*r.partition); }},
    ThresholdField{
        .name = "credit",
        .read = read_size<&Request::credit>,
        .is_given = has<&Request::credit>,
        .is_taken =
            [](const Strategy& s) { return s.other && s.other->dispatch.credit.has_value(); },
        .key = "credit_bytes",
        .value = bytes_of<&Request::credit>,
        .words = [](const Request& r) { return "credit " + to_text(*r.credit); }},
    ThresholdField{.name = "server-machines",
                   .read = read_count<&Request::server_machines, models::most_servers>,
                   .is_given = has<&Request::server_machines>,
                   .is_taken = is_served,
                   .key = "server_machines",
                   .value = count_of<&Request::server_machines>,
                   .words =
                       [](const Request& r) {
                         return fmt::format("{} machines of servers", *r.server_machines);
                       }},
    ThresholdField{
        .name = "server-transport",
        .read =
            [](Request& r, const std::string& text) {
              r.transport = models::server_transport_from_name(text);
            },
        .is_given = has<&Request::transport>,
        .is_taken = is_served,
        .key = "server_transport",
        .value = name_of<&Request::transport>,
        .words =
            [](const Request& r) { return fmt::format("servers over {}", name(*r.transport)); }},
    ThresholdField{
        .name = "factors-every",
        .read = read_count<&Request::factors_every, models::most_factors_every>,
        .is_given = has<&Request::factors_every>,
        .is_taken = [](const Strategy& s) { return s.preconditions(); },
        .key = "factors_every",
        .value = count_of<&Request::factors_every>,
        .words =
            [](const Request& r) { return fmt::format("factors every {}", *r.factors_every); }},
    ThresholdField{.name = "host-copies",
                   .is_flag = true,
                   .read = [](Request& r, const std::string&) { r.through_host = true; },
                   .is_given = has<&Request::through_host>,
                   .is_taken = takes_host_copies,
                   .key = "host_copies",
                   .value = [](const Request&) -> Json { return true; },
                   .words = [](const Request&) { return std::string("host copies"); }},
};

// Some names of strategies that take the field.
std::vector<std::string_view> takers(const ThresholdField& field) {
  constexpr std::size_t most = 4;
  std::vector<std::string_view> names;
  for (const auto& catalogue : {models::strategy_catalogue(), models::other_system_catalogue(),
                                models::optimizer_catalogue()}) {
    for (const Strategy& strategy : catalogue)
      if (field.is_taken(strategy) && names.size() < most) names.push_back(strategy.name);
  }
  return names;
}

}  // namespace

std::span<const ThresholdField> threshold_fields() {
  return fields;
}

const ThresholdField* threshold_field(std::string_view name) {
  const auto* const found =
      std::find_if(fields.begin(), fields.end(),
                   [&](const ThresholdField& field) { return field.name == name; });
  return found == fields.end() ? nullptr : found;
}

std::string option_of(const ThresholdField& field) {
  return fmt::format("--{}", field.name);
}

void read_threshold(const ThresholdField& field, const std::string& text,
                    ThresholdRequest& request) {
  try {
    field.read(request, text);
  } catch (const InputError& error) {
    throw error.at({option_of(field)});
  }
}

void check_together(const ThresholdRequest& request) {
  if (request.server_machines && request.servers)
    throw InputError({"--server-machines"}, "servers are on machines of their own or of workers",
                     "leave --servers or --server-machines out");
}

std::vector<const ThresholdField*> given_fields(const ThresholdRequest& request) {
  std::vector<const ThresholdField*> given;
  for (const ThresholdField& field : fields)
    if (field.is_given(request)) given.push_back(&field);
  return given;
}

void check_taken(const ThresholdRequest& request,
                 const std::vector<const models::Strategy*>& strategies) {
  for (const ThresholdField* field : given_fields(request)) {
    if (std::any_of(strategies.begin(), strategies.end(),
                    [&](const Strategy* strategy) { return field->is_taken(*strategy); }))
      continue;
    throw InputError({option_of(*field)},
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
