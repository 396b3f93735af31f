// Tests: tests/models/profile_test.cc, tests/models/profile_hostile_test.cc.
#include "models/plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline::models {
namespace {

using Json = nlohmann::json;                 // read: finds a key in O(log n), also in hostile files
using OrderedJson = nlohmann::ordered_json;  // written: keys in the order of the format

constexpr std::string_view schema = "paceline.profile/1";

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
  [[nodiscard]] int count() const {
    const double value = number();
    if (value != std::floor(value) || value < 1 || value > 1e6)
      fail(fmt::format("{} is not a whole number from 1 to 1000000", value), "");
    return static_cast<int>(value);
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
    value.fail(
        fmt::format("{} to {} is out of range", low, high),
        fmt::format("it must be {} to {}", to_text(Limits<Q>::least), to_text(Limits<Q>::most)));
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
               std::optional<Figure<BytesPerSecond>>& bandwidth) {
  if (!links.has(name)) return;
  const Value link = links.at(name);
  link.check_keys({"latency_s", "bandwidth_bytes_per_s"});
  latency = optional_figure<Seconds>(link, "latency_s", false);
  bandwidth = optional_figure<BytesPerSecond>(link, "bandwidth_bytes_per_s", true);
}

Precision precision_of(const Value& entry) {
  return entry.at("precision").named([](const std::string& s) { return precision_from_name(s); });
}

Json parse_json(std::string_view text, const std::string& file) {
  // nlohmann parses arrays and objects without recursion, so that nesting is no danger.
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    int line = 1;
    int column = 1;
    const std::size_t end =
        std::min(text.size(), error.byte == 0 ? std::size_t{0} : error.byte - 1);
    for (std::size_t i = 0; i < end; ++i) {
      column = text[i] == '\n' ? 1 : column + 1;
      line += text[i] == '\n' ? 1 : 0;
    }
    throw InputError({file, line, column}, "this is not JSON",
                     "give a profile as paceline writes it");
  } catch (const Json::out_of_range&) {
    throw InputError({file}, "a number is too large", "write finite numbers");
  }
}

template <class Q>
OrderedJson figure_json(const Figure<Q>& figure) {
  return {{"value", figure.value.value()},
          {"low", figure.low.value()},
          {"high", figure.high.value()},
          {"provenance", name(figure.provenance)},
          {"source", figure.source}};
}

OrderedJson link_json(const std::optional<Figure<Seconds>>& latency,
                      const std::optional<Figure<BytesPerSecond>>& bandwidth) {
  OrderedJson json = OrderedJson::object();
  if (latency) json["latency_s"] = figure_json(*latency);
  if (bandwidth) json["bandwidth_bytes_per_s"] = figure_json(*bandwidth);
  return json;
}

}  // namespace

Profile parse_profile(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const Value root(json, file, "");
  root.check_keys(
      {"schema", "name", "cluster", "device", "origin", "links", "throughputs", "layers"});
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
    links.check_keys({"intra", "nic"});
    read_link(links, "intra", profile.intra_latency, profile.intra_bandwidth);
    read_link(links, "nic", profile.nic_latency, profile.nic_bandwidth);
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
    for (const Value& entry : root.at("layers").elements()) {
      entry.check_keys(
          {"network", "precision", "batch_per_rank", "layer", "forward_s", "backward_s"});
      profile.layers.push_back({entry.at("network").text(), precision_of(entry),
                                entry.at("batch_per_rank").count(), entry.at("layer").text(),
                                read_figure<Seconds>(entry.at("forward_s"), false),
                                read_figure<Seconds>(entry.at("backward_s"), false)});
    }
  }
  return profile;
}

std::string to_json(const Profile& profile) {
  OrderedJson json = {{"schema", schema},
                      {"name", profile.name},
                      {"cluster", profile.cluster},
                      {"device", profile.device},
                      {"origin", profile.origin}};
  json["links"] = {{"intra", link_json(profile.intra_latency, profile.intra_bandwidth)},
                   {"nic", link_json(profile.nic_latency, profile.nic_bandwidth)}};
  json["throughputs"] = OrderedJson::array();
  for (const CalibratedThroughput& entry : profile.throughputs) {
    json["throughputs"].push_back({{"network", entry.network},
                                   {"precision", name(entry.precision)},
                                   {"batch_per_rank", entry.batch_per_rank},
                                   {"samples_per_s", figure_json(entry.samples)}});
  }
  json["layers"] = OrderedJson::array();
  for (const CalibratedLayer& entry : profile.layers) {
    json["layers"].push_back({{"network", entry.network},
                              {"precision", name(entry.precision)},
                              {"batch_per_rank", entry.batch_per_rank},
                              {"layer", entry.layer},
                              {"forward_s", figure_json(entry.forward)},
                              {"backward_s", figure_json(entry.backward)}});
  }
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace paceline::models
