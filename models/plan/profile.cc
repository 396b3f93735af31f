// Tests: tests/models/profile_test.cc, tests/models/profile_hostile_test.cc.
#include "models/plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/place_in.h"

namespace paceline::models {
namespace {

using Json = nlohmann::json;                 // read: finds a key in O(log n), also in hostile files
using OrderedJson = nlohmann::ordered_json;  // written: keys in the order of the format

constexpr std::string_view schema = "paceline.profile/1";

constexpr std::array<std::pair<CurveKind, std::string_view>, 3> curve_kinds = {
    {{CurveKind::point_to_point, "point-to-point"},
     {CurveKind::exchange, "exchange"},
     {CurveKind::all_reduce, "all-reduce"}}};
constexpr std::array<std::pair<RateKind, std::string_view>, 3> rate_kinds = {
    {{RateKind::copy, "copy"}, {RateKind::cast, "cast"}, {RateKind::reduce, "reduce"}}};

template <class Names>
auto kind_from_name(const Names& names, const char* what, std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [kind, name] : names) {
    if (name == text) return kind;
    known.emplace_back(name);
  }
  throw unknown_name(what, text, known);
}

// A value of the document, with its path for errors: "throughputs[1].samples_per_s".
class Value {
 public:
  Value(const Json& json, std::string file, std::string path)
      : json_(json), file_(std::move(file)), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const {
    throw InputError({file_}, (path_.empty() ? std::string("the profile") : path_) + ": " + problem,
                     remedy);
  }
  // Must be an object with known keys only.
  void check_keys(const std::vector<std::string>& keys) const {
    if (!json_.is_object()) fail("this is no object", "write {...}");
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const InputError error = unknown_name("key", key, keys);
      fail(error.problem(), error.remedy());
    }
  }
  [[nodiscard]] bool has(const char* key) const {
    return json_.contains(key) && !json_[key].is_null();
  }
  [[nodiscard]] Value at(const char* key) const {
    if (!json_.is_object() || !json_.contains(key))
      fail(fmt::format("'{}' is missing", key), fmt::format("add \"{}\"", key));
    return {json_[key], file_, path_.empty() ? key : path_ + "." + key};
  }
  [[nodiscard]] std::vector<Value> elements() const {
    if (!json_.is_array()) fail("this is no array", "write [...]");
    std::vector<Value> values;
    for (std::size_t i = 0; i < json_.size(); ++i)
      values.emplace_back(json_[i], file_, fmt::format("{}[{}]", path_, i));
    return values;
  }
  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) fail("this is no text", "write \"...\"");
    return json_.get<std::string>();
  }
  [[nodiscard]] double number() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>()))
      fail("this is no number", "write a finite number");
    return json_.get<double>();
  }
  [[nodiscard]] double at_least_0() const {
    const double value = number();
    if (value < 0) fail(fmt::format("{} is too small", value), "it must be at least 0");
    return value;
  }
  [[nodiscard]] bool flag() const {
    if (!json_.is_boolean()) fail("this is neither true nor false", "write true or false");
    return json_.get<bool>();
  }
  [[nodiscard]] int count() const { return static_cast<int>(whole(1'000'000)); }
  // Bytes of a segment.
  [[nodiscard]] std::int64_t size() const { return whole(1 << 30); }
  [[nodiscard]] std::int64_t whole(std::int64_t most) const {
    const double value = number();
    if (value != std::floor(value) || value < 1 || value > static_cast<double>(most))
      fail(fmt::format("{} is not a whole number from 1 to {}", value, most), "");
    return static_cast<std::int64_t>(value);
  }
  template <class F>
  [[nodiscard]] auto named(F parse) const {
    const std::string name = text();
    try {
      return parse(name);
    } catch (const InputError& error) {
      fail(error.problem(), error.remedy());
    }
  }

 private:
  const Json& json_;
  std::string file_;
  std::string path_;
};

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

template <class Q>
Figure<Q> read_figure(const Value& value, bool positive) {
  value.check_keys({"value", "low", "high", "provenance", "source"});
  const double stated = value.at("value").number();
  const double low = value.has("low") ? value.at("low").number() : stated;
  const double high = value.has("high") ? value.at("high").number() : stated;
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
  return {Q{stated}, Q{low}, Q{high}, value.at("provenance").named([](const std::string& s) {
            return provenance_from_name(s);
          }),
          value.at("source").text()};
}

template <class Q>
std::optional<Figure<Q>> optional_figure(const Value& value, const char* key, bool positive) {
  if (!value.has(key)) return std::nullopt;
  return read_figure<Q>(value.at(key), positive);
}

void read_link(const Value& links, const char* name, std::optional<Figure<Seconds>>& latency,
               std::optional<Figure<BytesPerSecond>>& bandwidth,
               std::optional<Figure<double>>& both_ways) {
  if (!links.has(name)) return;
  const Value link = links.at(name);
  link.check_keys({"latency_s", "bandwidth_bytes_per_s", "both_ways"});
  latency = optional_figure<Seconds>(link, "latency_s", false);
  bandwidth = optional_figure<BytesPerSecond>(link, "bandwidth_bytes_per_s", true);
  both_ways = optional_figure<double>(link, "both_ways", true);
}

Figure<double> read_uplink(const Value& uplink) {
  uplink.check_keys({"oversubscription"});
  const Value value = uplink.at("oversubscription");
  const auto figure = read_figure<double>(value, true);
  if (figure.low < 1)
    value.fail(fmt::format("{} is too small", figure.low), "it must be at least 1");
  return figure;
}

Precision precision_of(const Value& entry) {
  return entry.at("precision").named([](const std::string& s) { return precision_from_name(s); });
}

NumberType type_of(const Value& entry, const char* key) {
  return entry.at(key).named([](const std::string& s) { return wire_type_from_name(s); });
}

CalibratedTransport read_transport(const Value& value) {
  value.check_keys({"name", "smallest_segment_bytes", "largest_segment_bytes", "ahead_bytes",
                    "message_gap_s", "fairness"});
  const CalibratedTransport transport{
      .name = value.at("name").text(),
      .smallest_segment = Bytes{static_cast<double>(value.at("smallest_segment_bytes").size())},
      .largest_segment = Bytes{static_cast<double>(value.at("largest_segment_bytes").size())},
      .ahead = Bytes{value.has("ahead_bytes") ? value.at("ahead_bytes").at_least_0() : 0.0},
      .message_gap = read_figure<Seconds>(value.at("message_gap_s"), false),
      .fairness = value.at("fairness").at_least_0()};
  if (transport.fairness > 1) value.at("fairness").fail("it is more than 1", "write 0 to 1");
  if (transport.smallest_segment > transport.largest_segment)
    value.fail("its smallest segment is larger than its largest", "write smallest <= largest");
  return transport;
}

CalibratedCurve read_curve(const Value& entry) {
  entry.check_keys(
      {"kind", "between_nodes", "library", "wire_type", "ranks", "pieces", "residual", "source"});
  CalibratedCurve curve{
      .kind = entry.at("kind").named(
          [](const std::string& s) { return kind_from_name(curve_kinds, "kind of curve", s); }),
      .between_nodes = entry.at("between_nodes").flag(),
      .library = entry.has("library") ? entry.at("library").text() : "",
      .wire = entry.has("wire_type") ? type_of(entry, "wire_type") : WireType::fp32,
      .ranks = entry.at("ranks").count(),
      .pieces = {},
      .residual = entry.at("residual").at_least_0(),
      .source = entry.at("source").text()};
  const Value pieces = entry.at("pieces");
  for (const Value& piece : pieces.elements()) {
    piece.check_keys({"from_bytes", "alpha_s", "beta_s_per_byte"});
    const double from = piece.at("from_bytes").at_least_0();
    if (curve.pieces.empty() ? from != 0 : from <= curve.pieces.back().from.value())
      piece.at("from_bytes").fail("pieces are not in order", "begin with 0 bytes, and go up");
    curve.pieces.push_back({Bytes{from}, read_figure<Seconds>(piece.at("alpha_s"), false),
                            read_figure<SecondsPerByte>(piece.at("beta_s_per_byte"), false)});
  }
  if (curve.pieces.empty()) pieces.fail("a curve without pieces", "give at least one");
  return curve;
}

CalibratedRate read_rate(const Value& entry) {
  entry.check_keys({"kind", "type", "bytes_per_s"});
  return {entry.at("kind").named(
              [](const std::string& s) { return kind_from_name(rate_kinds, "kind of rate", s); }),
          type_of(entry, "type"), read_figure<BytesPerSecond>(entry.at("bytes_per_s"), true)};
}

CalibratedLayer read_layer(const Value& entry) {
  entry.check_keys({"network", "precision", "batch_per_rank", "layer", "forward_s", "backward_s",
                    "forward_beside_traffic_s", "backward_beside_traffic_s"});
  return {entry.at("network").text(),
          precision_of(entry),
          entry.at("batch_per_rank").count(),
          entry.at("layer").text(),
          read_figure<Seconds>(entry.at("forward_s"), false),
          read_figure<Seconds>(entry.at("backward_s"), false),
          optional_figure<Seconds>(entry, "forward_beside_traffic_s", false),
          optional_figure<Seconds>(entry, "backward_beside_traffic_s", false)};
}

Json parse_json(std::string_view text, const std::string& file) {
  // nlohmann parses arrays and objects without recursion, so that nesting is no danger.
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    throw InputError(place_in(file, text, offset), "this is not JSON",
                     "give a profile as paceline writes it");
  } catch (const Json::out_of_range&) {
    throw InputError({file}, "a number is too large", "write finite numbers");
  }
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
OrderedJson figure_json(const Figure<Q>& figure) {
  return {{"value", number_of(figure.value)},
          {"low", number_of(figure.low)},
          {"high", number_of(figure.high)},
          {"provenance", name(figure.provenance)},
          {"source", figure.source}};
}

OrderedJson transport_json(const CalibratedTransport& transport) {
  return {{"name", transport.name},
          {"smallest_segment_bytes", static_cast<std::int64_t>(transport.smallest_segment.value())},
          {"largest_segment_bytes", static_cast<std::int64_t>(transport.largest_segment.value())},
          {"ahead_bytes", static_cast<std::int64_t>(transport.ahead.value())},
          {"message_gap_s", figure_json(transport.message_gap)},
          {"fairness", transport.fairness}};
}

OrderedJson curve_json(const CalibratedCurve& curve) {
  OrderedJson json = {{"kind", name(curve.kind)}, {"between_nodes", curve.between_nodes}};
  if (curve.kind == CurveKind::all_reduce) {
    json["library"] = curve.library;
    json["wire_type"] = name(curve.wire);
  }
  json["ranks"] = curve.ranks;
  json["pieces"] = OrderedJson::array();
  for (const CurvePiece& piece : curve.pieces) {
    json["pieces"].push_back({{"from_bytes", piece.from.value()},
                              {"alpha_s", figure_json(piece.alpha)},
                              {"beta_s_per_byte", figure_json(piece.beta)}});
  }
  json["residual"] = curve.residual;
  json["source"] = curve.source;
  return json;
}

OrderedJson layer_json(const CalibratedLayer& layer) {
  OrderedJson json = {{"network", layer.network},
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

OrderedJson link_json(const std::optional<Figure<Seconds>>& latency,
                      const std::optional<Figure<BytesPerSecond>>& bandwidth,
                      const std::optional<Figure<double>>& both_ways) {
  OrderedJson json = OrderedJson::object();
  if (latency) json["latency_s"] = figure_json(*latency);
  if (bandwidth) json["bandwidth_bytes_per_s"] = figure_json(*bandwidth);
  if (both_ways) json["both_ways"] = figure_json(*both_ways);
  return json;
}

}  // namespace

std::string_view name(CurveKind kind) {
  for (const auto& [value, text] : curve_kinds) {
    if (value == kind) return text;
  }
  return "unknown";
}

std::string_view name(RateKind kind) {
  for (const auto& [value, text] : rate_kinds) {
    if (value == kind) return text;
  }
  return "unknown";
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

Profile parse_profile(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const Value root(json, file, "");
  root.check_keys({"schema", "name", "cluster", "device", "origin", "links", "transport", "curves",
                   "rates", "throughputs", "layers"});
  const std::string found = root.at("schema").text();
  if (found != schema)
    root.at("schema").fail(fmt::format("{} is not what this version reads", in_quotes(found)),
                           fmt::format("give a profile of schema {}", schema));
  Profile profile;
  profile.name = root.at("name").text();
  profile.cluster = root.at("cluster").text();
  profile.device = root.at("device").text();
  profile.origin = root.at("origin").text();
  if (root.has("links")) {
    const Value links = root.at("links");
    links.check_keys({"intra", "nic", "uplink"});
    read_link(links, "intra", profile.intra_latency, profile.intra_bandwidth,
              profile.intra_both_ways);
    read_link(links, "nic", profile.nic_latency, profile.nic_bandwidth, profile.nic_both_ways);
    if (links.has("uplink")) profile.uplink_oversubscription = read_uplink(links.at("uplink"));
  }
  if (root.has("transport")) profile.transport = read_transport(root.at("transport"));
  if (root.has("curves")) {
    for (const Value& entry : root.at("curves").elements())
      profile.curves.push_back(read_curve(entry));
  }
  if (root.has("rates")) {
    for (const Value& entry : root.at("rates").elements())
      profile.rates.push_back(read_rate(entry));
  }
  if (root.has("throughputs")) {
    for (const Value& entry : root.at("throughputs").elements()) {
      entry.check_keys({"network", "precision", "batch_per_rank", "samples_per_s"});
      profile.throughputs.push_back({entry.at("network").text(), precision_of(entry),
                                     entry.at("batch_per_rank").count(),
                                     read_figure<PerSecond>(entry.at("samples_per_s"), true)});
    }
  }
  if (root.has("layers")) {
    for (const Value& entry : root.at("layers").elements())
      profile.layers.push_back(read_layer(entry));
  }
  return profile;
}

std::string to_json(const Profile& profile) {
  OrderedJson json = {{"schema", schema},
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
  if (!profile.curves.empty()) json["curves"] = OrderedJson::array();
  for (const CalibratedCurve& curve : profile.curves) json["curves"].push_back(curve_json(curve));
  if (!profile.rates.empty()) json["rates"] = OrderedJson::array();
  for (const CalibratedRate& rate : profile.rates) {
    json["rates"].push_back({{"kind", name(rate.kind)},
                             {"type", name(rate.type)},
                             {"bytes_per_s", figure_json(rate.bytes)}});
  }
  json["throughputs"] = OrderedJson::array();
  for (const CalibratedThroughput& entry : profile.throughputs) {
    json["throughputs"].push_back({{"network", entry.network},
                                   {"precision", name(entry.precision)},
                                   {"batch_per_rank", entry.batch_per_rank},
                                   {"samples_per_s", figure_json(entry.samples)}});
  }
  json["layers"] = OrderedJson::array();
  for (const CalibratedLayer& entry : profile.layers) json["layers"].push_back(layer_json(entry));
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace paceline::models
