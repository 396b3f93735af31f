// Tests: tests/models/profile_test.cc, tests/models/profile_hostile_test.cc.
#include "models/profile/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "models/base/json.h"
#include "models/base/json_reader.h"
#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline::models {
namespace {

constexpr std::string_view schema = "paceline.profile/1";

constexpr std::array<std::pair<CurveKind, Collective>, 9> library_kinds = {
    {{CurveKind::all_reduce, Collective::all_reduce},
     {CurveKind::reduce_scatter, Collective::reduce_scatter},
     {CurveKind::all_gather, Collective::all_gather},
     {CurveKind::broadcast, Collective::broadcast},
     {CurveKind::reduce, Collective::reduce},
     {CurveKind::gather, Collective::gather},
     {CurveKind::scatter, Collective::scatter},
     {CurveKind::all_to_all, Collective::all_to_all},
     {CurveKind::neighbour_exchange, Collective::neighbour_exchange}}};

const std::vector<std::pair<CurveKind, std::string_view>>& curve_kinds() {
  static const auto kinds = [] {
    std::vector<std::pair<CurveKind, std::string_view>> all = {
        {CurveKind::point_to_point, "point-to-point"}, {CurveKind::exchange, "exchange"}};
    for (const auto& [kind, collective] : library_kinds) all.emplace_back(kind, name(collective));
    return all;
  }();
  return kinds;
}

constexpr std::array<std::pair<RateKind, std::string_view>, 3> rate_kinds = {
    {{RateKind::copy, "copy"}, {RateKind::cast, "cast"}, {RateKind::reduce, "reduce"}}};
constexpr std::array<std::pair<DeviceWork, std::string_view>, 7> device_works = {
    {{DeviceWork::host_to_device, "host-to-device"},
     {DeviceWork::device_to_host, "device-to-host"},
     {DeviceWork::copy, "copy"},
     {DeviceWork::cast, "cast"},
     {DeviceWork::reduce, "reduce"},
     {DeviceWork::pack, "pack"},
     {DeviceWork::unpack, "unpack"}}};

double at_least_0(const JsonValue& value) {
  const double number = value.number();
  if (number < 0) value.fail(fmt::format("{} is too small", number), "it must be at least 0");
  return number;
}

int count_of(const JsonValue& value) {
  return static_cast<int>(value.whole(1, 1'000'000));
}

// The size under `key`, or under the name that profiles gave it before November 2026.
Bytes message_size_of(const JsonValue& transport, const char* key, const char* former_key) {
  const bool is_former = !transport.has(key) && transport.has(former_key);
  const JsonValue size = transport.at(is_former ? former_key : key);
  return Bytes{static_cast<double>(size.whole(1, 1 << 30))};
}

template <class Q>
std::string limit_text(Q quantity) {
  if constexpr (std::is_same_v<Q, SecondsPerByte>) {
    return fmt::format("{} s/B", quantity.value());
  } else if constexpr (std::is_same_v<Q, double>) {
    return fmt::format("{}", quantity);
  } else {
    return to_text(quantity);
  }
}

// A figure, or the number alone where its interval is not known.
template <class Q>
Figure<Q> read_figure(const JsonValue& value, bool positive) {
  const bool is_short = value.is_number();
  if (!is_short && !value.is_object())
    value.fail(
        "this is no figure",
        R"(write a number, or {"value": 2, "low": 1.9, "high": 2.1, "provenance": "measured", )"
        R"("source": "where it is from"})");
  if (!is_short) value.check_keys({"value", "low", "high", "provenance", "source"});
  const double stated = is_short ? value.number() : value.at("value").number();
  const auto end = [&](const char* key) {
    return !is_short && value.has_value(key) ? value.at(key).number() : stated;
  };
  const double low = end("low");
  const double high = end("high");
  if (low < 0 || (positive && low <= 0))
    value.fail(fmt::format("{} is too small", low),
               positive ? "it must be more than 0" : "it must be at least 0");
  if (low > stated || stated > high)
    value.fail("its value is not between low and high", "write low <= value <= high");
  if ((positive && !within_limits(Q{low})) || !within_limits(Q{high})) {
    value.fail(fmt::format("{} to {} is out of range", low, high),
               fmt::format("it must be {} to {}", limit_text(Limits<Q>::least),
                           limit_text(Limits<Q>::most)));
  }
  if (is_short)
    return Figure<Q>::exact(Q{stated}, Provenance::calibrated, "the profile, without an interval");
  return {Q{stated}, Q{low}, Q{high}, value.at("provenance").named([](const std::string& s) {
            return provenance_from_name(s);
          }),
          value.at("source").text()};
}

template <class Q>
std::optional<Figure<Q>> optional_figure(const JsonValue& value, const char* key, bool positive) {
  if (!value.has_value(key)) return std::nullopt;
  return read_figure<Q>(value.at(key), positive);
}

void read_link(const JsonValue& links, const char* name, std::optional<Figure<Seconds>>& latency,
               std::optional<Figure<BytesPerSecond>>& bandwidth,
               std::optional<Figure<double>>& both_ways) {
  if (!links.has_value(name)) return;
  const JsonValue link = links.at(name);
  link.check_keys({"latency_s", "bandwidth_bytes_per_s", "both_ways"});
  latency = optional_figure<Seconds>(link, "latency_s", false);
  bandwidth = optional_figure<BytesPerSecond>(link, "bandwidth_bytes_per_s", true);
  both_ways = optional_figure<double>(link, "both_ways", true);
}

Figure<double> read_at_least_one(const JsonValue& value) {
  const auto figure = read_figure<double>(value, true);
  if (figure.low < 1)
    value.fail(fmt::format("{} is too small", figure.low), "it must be at least 1");
  return figure;
}

Figure<double> read_uplink(const JsonValue& uplink) {
  uplink.check_keys({"oversubscription"});
  return read_at_least_one(uplink.at("oversubscription"));
}

Precision precision_of(const JsonValue& entry) {
  return entry.at("precision").named([](const std::string& s) { return precision_from_name(s); });
}

NumberType type_of(const JsonValue& entry, const char* key) {
  return entry.at(key).named([](const std::string& s) { return wire_type_from_name(s); });
}

CalibratedTransport read_transport(const JsonValue& value) {
  value.check_keys({"name", "smallest_message_bytes", "largest_message_bytes",
                    "smallest_segment_bytes", "largest_segment_bytes", "ahead_bytes",
                    "message_gap_s", "message_header_bytes", "fairness"});
  const CalibratedTransport transport{
      .name = value.at("name").text(),
      .smallest_message =
          message_size_of(value, "smallest_message_bytes", "smallest_segment_bytes"),
      .largest_message = message_size_of(value, "largest_message_bytes", "largest_segment_bytes"),
      .ahead = Bytes{value.has_value("ahead_bytes") ? at_least_0(value.at("ahead_bytes")) : 0.0},
      .message_gap = optional_figure<Seconds>(value, "message_gap_s", false),
      .message_header = optional_figure<Bytes>(value, "message_header_bytes", false),
      .fairness = at_least_0(value.at("fairness"))};
  if (transport.fairness > 1) value.at("fairness").fail("it is more than 1", "write 0 to 1");
  if (transport.smallest_message > transport.largest_message)
    value.fail("its smallest message is larger than its largest", "write smallest <= largest");
  return transport;
}

std::optional<MeasuredSizes> measured_sizes(const JsonValue& entry) {
  if (!entry.has_value("least_bytes") && !entry.has_value("most_bytes")) return std::nullopt;
  const MeasuredSizes sizes{Bytes{at_least_0(entry.at("least_bytes"))},
                            Bytes{at_least_0(entry.at("most_bytes"))}};
  if (sizes.least > sizes.most)
    entry.at("least_bytes")
        .fail("the smallest measured size is larger than the largest", "write least <= most");
  return sizes;
}

std::vector<CurvePiece> read_pieces(const JsonValue& entry) {
  std::vector<CurvePiece> all;
  const JsonValue pieces = entry.at("pieces");
  pieces.for_each([&all](const JsonValue& piece) {
    piece.check_keys({"from_bytes", "alpha_s", "beta_s_per_byte"});
    const double from = at_least_0(piece.at("from_bytes"));
    if (all.empty() ? from != 0 : from <= all.back().from.value())
      piece.at("from_bytes").fail("pieces are not in order", "begin with 0 bytes, and go up");
    all.push_back({Bytes{from}, read_figure<Seconds>(piece.at("alpha_s"), false),
                   read_figure<SecondsPerByte>(piece.at("beta_s_per_byte"), false)});
  });
  if (all.empty()) pieces.fail("a curve without pieces", "give at least one");
  return all;
}

CalibratedCurve read_curve(const JsonValue& entry) {
  entry.check_keys({"kind", "between_nodes", "library", "wire_type", "ranks", "least_bytes",
                    "most_bytes", "pieces", "residual", "source"});
  return {.kind = entry.at("kind").named(
              [](const std::string& s) { return value_named(curve_kinds(), "kind of curve", s); }),
          .between_nodes = entry.at("between_nodes").flag(),
          .library = entry.has_value("library") ? entry.at("library").text() : "",
          .wire = entry.has_value("wire_type") ? type_of(entry, "wire_type") : WireType::fp32,
          .ranks = count_of(entry.at("ranks")),
          .measured = measured_sizes(entry),
          .pieces = read_pieces(entry),
          .residual = at_least_0(entry.at("residual")),
          .source = entry.at("source").text()};
}

CalibratedRate read_rate(const JsonValue& entry) {
  entry.check_keys({"kind", "type", "bytes_per_s"});
  return {entry.at("kind").named(
              [](const std::string& s) { return value_named(rate_kinds, "kind of rate", s); }),
          type_of(entry, "type"), read_figure<BytesPerSecond>(entry.at("bytes_per_s"), true)};
}

CalibratedLayer read_layer(const JsonValue& entry) {
  entry.check_keys({"network", "precision", "batch_per_rank", "layer", "forward_s", "backward_s",
                    "forward_beside_traffic_s", "backward_beside_traffic_s"});
  return {entry.at("network").text(),
          precision_of(entry),
          count_of(entry.at("batch_per_rank")),
          entry.at("layer").text(),
          read_figure<Seconds>(entry.at("forward_s"), false),
          read_figure<Seconds>(entry.at("backward_s"), false),
          optional_figure<Seconds>(entry, "forward_beside_traffic_s", false),
          optional_figure<Seconds>(entry, "backward_beside_traffic_s", false)};
}

CalibratedUpdate read_update(const JsonValue& entry) {
  entry.check_keys({"network", "precision", "update_s"});
  return {entry.at("network").text(), precision_of(entry),
          read_figure<Seconds>(entry.at("update_s"), false)};
}

CalibrationCheck read_check(const JsonValue& entry) {
  entry.check_keys({"network", "precision", "batch_per_rank", "iteration_s", "sum_s"});
  return {entry.at("network").text(), precision_of(entry), count_of(entry.at("batch_per_rank")),
          read_figure<Seconds>(entry.at("iteration_s"), true),
          read_figure<Seconds>(entry.at("sum_s"), false)};
}

DeviceCurve read_device_curve(const JsonValue& entry) {
  entry.check_keys({"work", "type", "least_bytes", "most_bytes", "pieces", "residual", "source"});
  return {.work = entry.at("work").named([](const std::string& s) {
            return value_named(device_works, "work of a device", s);
          }),
          .type = type_of(entry, "type"),
          .measured = measured_sizes(entry),
          .pieces = read_pieces(entry),
          .residual = at_least_0(entry.at("residual")),
          .source = entry.at("source").text()};
}

CalibratedThroughput read_throughput(const JsonValue& entry) {
  entry.check_keys(
      {"network", "precision", "batch_per_rank", "samples_per_s", "ranks", "sequence"});
  CalibratedThroughput throughput{entry.at("network").text(), precision_of(entry),
                                  count_of(entry.at("batch_per_rank")),
                                  read_figure<PerSecond>(entry.at("samples_per_s"), true)};
  if (entry.has_value("ranks")) throughput.ranks = count_of(entry.at("ranks"));
  if (entry.has_value("sequence")) throughput.sequence = count_of(entry.at("sequence"));
  return throughput;
}

CalibratedSlowdown read_slowdown(const JsonValue& entry) {
  entry.check_keys({"network", "precision", "factor", "beside_traffic"});
  CalibratedSlowdown slowdown{entry.at("network").text(), precision_of(entry),
                              read_figure<double>(entry.at("factor"), true)};
  if (entry.has_value("beside_traffic"))
    slowdown.beside_traffic = read_at_least_one(entry.at("beside_traffic"));
  return slowdown;
}

// Reads an array that may be left out. No two of its entries may be about the same thing, for
// readers take the first or the last. `of` says what an entry is about.
template <class T, class Read, class Of>
void read_each(const JsonValue& root, const char* key, Read read, std::vector<T>& all, Of of) {
  if (!root.has_value(key)) return;
  std::set<decltype(of(std::declval<T>()))> known;
  root.at(key).for_each([&](const JsonValue& entry) {
    all.push_back(read(entry));
    if (!known.insert(of(all.back())).second)
      entry.fail("an entry before is of the same", "leave one of the two out");
  });
}

DeviceCosts read_device_costs(const JsonValue& value) {
  value.check_keys({"launch_s", "host_launch_s", "curves"});
  DeviceCosts costs{.launch = optional_figure<Seconds>(value, "launch_s", false),
                    .host_launch = optional_figure<Seconds>(value, "host_launch_s", false)};
  read_each(value, "curves", read_device_curve, costs.curves,
            [](const DeviceCurve& c) { return std::pair(c.work, c.type); });
  return costs;
}

template <class Q>
double number_of(Q quantity) {
  if constexpr (std::is_same_v<Q, double>) {
    return quantity;
  } else {
    return quantity.value();
  }
}

template <class Q>
Json figure_json(const Figure<Q>& figure) {
  return {{"value", number_of(figure.value)},
          {"low", number_of(figure.low)},
          {"high", number_of(figure.high)},
          {"provenance", name(figure.provenance)},
          {"source", figure.source}};
}

Json transport_json(const CalibratedTransport& transport) {
  Json json = {
      {"name", transport.name},
      {"smallest_message_bytes", static_cast<std::int64_t>(transport.smallest_message.value())},
      {"largest_message_bytes", static_cast<std::int64_t>(transport.largest_message.value())},
      {"ahead_bytes", static_cast<std::int64_t>(transport.ahead.value())}};
  if (transport.message_gap) json["message_gap_s"] = figure_json(*transport.message_gap);
  if (transport.message_header)
    json["message_header_bytes"] = figure_json(*transport.message_header);
  json["fairness"] = transport.fairness;
  return json;
}

// What curves of messages and of a device have in common.
template <class Curve>
void add_fit(const Curve& curve, Json& json) {
  if (curve.measured) {
    json["least_bytes"] = curve.measured->least.value();
    json["most_bytes"] = curve.measured->most.value();
  }
  json["pieces"] = Json::array();
  for (const CurvePiece& piece : curve.pieces) {
    json["pieces"].push_back({{"from_bytes", piece.from.value()},
                              {"alpha_s", figure_json(piece.alpha)},
                              {"beta_s_per_byte", figure_json(piece.beta)}});
  }
  json["residual"] = curve.residual;
  json["source"] = curve.source;
}

Json curve_json(const CalibratedCurve& curve) {
  Json json = {{"kind", name(curve.kind)}, {"between_nodes", curve.between_nodes}};
  if (is_of_library(curve.kind)) {
    json["library"] = curve.library;
    json["wire_type"] = name(curve.wire);
  }
  json["ranks"] = curve.ranks;
  add_fit(curve, json);
  return json;
}

Json device_costs_json(const DeviceCosts& costs) {
  Json json = Json::object();
  if (costs.launch) json["launch_s"] = figure_json(*costs.launch);
  if (costs.host_launch) json["host_launch_s"] = figure_json(*costs.host_launch);
  json["curves"] = Json::array();
  for (const DeviceCurve& curve : costs.curves) {
    Json entry = {{"work", name(curve.work)}, {"type", name(curve.type)}};
    add_fit(curve, entry);
    json["curves"].push_back(std::move(entry));
  }
  return json;
}

Json layer_json(const CalibratedLayer& layer) {
  Json json = {{"network", layer.network},
               {"precision", name(layer.precision)},
               {"batch_per_rank", layer.batch_per_rank},
               {"layer", layer.layer},
               {"forward_s", figure_json(layer.forward)},
               {"backward_s", figure_json(layer.backward)}};
  if (layer.forward_beside_traffic)
    json["forward_beside_traffic_s"] = figure_json(*layer.forward_beside_traffic);
  if (layer.backward_beside_traffic)
    json["backward_beside_traffic_s"] = figure_json(*layer.backward_beside_traffic);
  return json;
}

Json link_json(const std::optional<Figure<Seconds>>& latency,
               const std::optional<Figure<BytesPerSecond>>& bandwidth,
               const std::optional<Figure<double>>& both_ways) {
  Json json = Json::object();
  if (latency) json["latency_s"] = figure_json(*latency);
  if (bandwidth) json["bandwidth_bytes_per_s"] = figure_json(*bandwidth);
  if (both_ways) json["both_ways"] = figure_json(*both_ways);
  return json;
}

}  // namespace

std::string_view name(CurveKind kind) {
  return name_in(curve_kinds(), kind);
}

CurveKind curve_kind(Collective collective) {
  return std::ranges::find(library_kinds, collective, &std::pair<CurveKind, Collective>::second)
      ->first;
}

std::optional<Collective> collective_of(CurveKind kind) {
  for (const auto& [of, collective] : library_kinds) {
    if (of == kind) return collective;
  }
  return std::nullopt;
}

bool is_of_library(CurveKind kind) {
  return collective_of(kind).has_value();
}

std::string_view name(RateKind kind) {
  return name_in(rate_kinds, kind);
}

std::string_view name(DeviceWork work) {
  return name_in(device_works, work);
}

const CurvePiece& CalibratedCurve::piece(Bytes bytes) const {
  const auto above = std::upper_bound(pieces.begin(), pieces.end(), bytes,
                                      [](Bytes b, const CurvePiece& p) { return b < p.from; });
  return above == pieces.begin() ? pieces.front() : *std::prev(above);
}

Seconds CalibratedCurve::time(Bytes bytes) const {
  const CurvePiece& at = piece(bytes);
  return at.alpha.value + bytes * at.beta.value;
}

double CalibratedCurve::misfit() const {
  return std::max(residual, least_misfit);
}

Profile parse_profile(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file, "the profile", "give a profile as paceline writes it");
  const JsonValue root = document.root();
  root.check_keys({"schema", "name", "cluster", "device", "origin", "links", "transport", "curves",
                   "rates", "throughputs", "slowdowns", "layers", "updates", "device_costs",
                   "checks"});
  root.check_schema(schema, "profile");
  Profile profile;
  profile.name = root.at("name").text();
  profile.cluster = root.at("cluster").text();
  profile.device = root.at("device").text();
  profile.origin = root.at("origin").text();
  if (root.has_value("links")) {
    const JsonValue links = root.at("links");
    links.check_keys({"intra", "nic", "uplink"});
    read_link(links, "intra", profile.intra_latency, profile.intra_bandwidth,
              profile.intra_both_ways);
    read_link(links, "nic", profile.nic_latency, profile.nic_bandwidth, profile.nic_both_ways);
    if (links.has_value("uplink"))
      profile.uplink_oversubscription = read_uplink(links.at("uplink"));
  }
  if (root.has_value("transport")) profile.transport = read_transport(root.at("transport"));
  read_each(root, "curves", read_curve, profile.curves, [](const CalibratedCurve& c) {
    return std::tuple(c.kind, c.between_nodes, c.library, c.wire, c.ranks);
  });
  read_each(root, "rates", read_rate, profile.rates,
            [](const CalibratedRate& r) { return std::tuple(r.kind, r.type); });
  read_each(root, "throughputs", read_throughput, profile.throughputs,
            [](const CalibratedThroughput& t) {
              return std::tuple(t.network, t.precision, t.batch_per_rank, t.ranks, t.sequence);
            });
  read_each(root, "slowdowns", read_slowdown, profile.slowdowns,
            [](const CalibratedSlowdown& s) { return std::tuple(s.network, s.precision); });
  read_each(root, "layers", read_layer, profile.layers, [](const CalibratedLayer& l) {
    return std::tuple(l.network, l.precision, l.batch_per_rank, l.layer);
  });
  read_each(root, "updates", read_update, profile.updates,
            [](const CalibratedUpdate& u) { return std::tuple(u.network, u.precision); });
  if (root.has_value("device_costs"))
    profile.device_costs = read_device_costs(root.at("device_costs"));
  read_each(root, "checks", read_check, profile.checks, [](const CalibrationCheck& c) {
    return std::tuple(c.network, c.precision, c.batch_per_rank);
  });
  return profile;
}

std::string to_json(const Profile& profile) {
  Json json = {{"schema", schema},
               {"name", profile.name},
               {"cluster", profile.cluster},
               {"device", profile.device},
               {"origin", profile.origin}};
  json["links"] = {
      {"intra", link_json(profile.intra_latency, profile.intra_bandwidth, profile.intra_both_ways)},
      {"nic", link_json(profile.nic_latency, profile.nic_bandwidth, profile.nic_both_ways)}};
  if (profile.uplink_oversubscription) {
    json["links"]["uplink"] = {{"oversubscription", figure_json(*profile.uplink_oversubscription)}};
  }
  if (profile.transport) json["transport"] = transport_json(*profile.transport);
  if (!profile.curves.empty()) json["curves"] = Json::array();
  for (const CalibratedCurve& curve : profile.curves) json["curves"].push_back(curve_json(curve));
  if (!profile.rates.empty()) json["rates"] = Json::array();
  for (const CalibratedRate& rate : profile.rates) {
    json["rates"].push_back({{"kind", name(rate.kind)},
                             {"type", name(rate.type)},
                             {"bytes_per_s", figure_json(rate.bytes)}});
  }
  json["throughputs"] = Json::array();
  for (const CalibratedThroughput& entry : profile.throughputs) {
    Json throughput = {{"network", entry.network},
                       {"precision", name(entry.precision)},
                       {"batch_per_rank", entry.batch_per_rank},
                       {"samples_per_s", figure_json(entry.samples)}};
    if (entry.ranks != 1) throughput["ranks"] = entry.ranks;
    if (entry.sequence != 0) throughput["sequence"] = entry.sequence;
    json["throughputs"].push_back(std::move(throughput));
  }
  if (!profile.slowdowns.empty()) json["slowdowns"] = Json::array();
  for (const CalibratedSlowdown& entry : profile.slowdowns) {
    Json slowdown = {{"network", entry.network},
                     {"precision", name(entry.precision)},
                     {"factor", figure_json(entry.factor)}};
    if (entry.beside_traffic) slowdown["beside_traffic"] = figure_json(*entry.beside_traffic);
    json["slowdowns"].push_back(std::move(slowdown));
  }
  json["layers"] = Json::array();
  for (const CalibratedLayer& entry : profile.layers) json["layers"].push_back(layer_json(entry));
  if (!profile.updates.empty()) json["updates"] = Json::array();
  for (const CalibratedUpdate& entry : profile.updates) {
    json["updates"].push_back({{"network", entry.network},
                               {"precision", name(entry.precision)},
                               {"update_s", figure_json(entry.time)}});
  }
  if (profile.device_costs) json["device_costs"] = device_costs_json(*profile.device_costs);
  if (!profile.checks.empty()) json["checks"] = Json::array();
  for (const CalibrationCheck& entry : profile.checks) {
    json["checks"].push_back({{"network", entry.network},
                              {"precision", name(entry.precision)},
                              {"batch_per_rank", entry.batch_per_rank},
                              {"iteration_s", figure_json(entry.iteration)},
                              {"sum_s", figure_json(entry.sum)}});
  }
  return json.indented() + "\n";
}

}  // namespace paceline::models
