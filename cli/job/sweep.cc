// Tests: tests/cli/sweep_test.py (end to end).
#include "cli/job/sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/job/files.h"
#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/base/yaml_reader.h"
#include "models/collective/algorithms.h"
#include "models/plan/strategy.h"
#include "runtime/training/checksum.h"
#include "simulator/cost/device_factor.h"
#include "simulator/question/question_fields.h"

namespace paceline::job {
namespace {

constexpr std::array<std::pair<SweepAxis, std::string_view>, sweep_axis_count> axis_names = {
    {{SweepAxis::model, "model"},
     {SweepAxis::cluster, "cluster"},
     {SweepAxis::profile, "profile"},
     {SweepAxis::bandwidth, "bandwidth"},
     {SweepAxis::latency, "latency"},
     {SweepAxis::compute, "compute"},
     {SweepAxis::precision, "precision"},
     {SweepAxis::batch, "batch"},
     {SweepAxis::accumulate, "accumulate"},
     {SweepAxis::ranks, "ranks"},
     {SweepAxis::wire, "wire"},
     {SweepAxis::overlap, "overlap"},
     {SweepAxis::strategy, "strategy"},
     {SweepAxis::theta, "theta"},
     {SweepAxis::eta, "eta"},
     {SweepAxis::group, "group"},
     {SweepAxis::segments, "segments"},
     {SweepAxis::streams, "streams"}}};

// Axes that are fields of a question, under their names.
constexpr std::array field_axes = {SweepAxis::precision, SweepAxis::batch,   SweepAxis::accumulate,
                                   SweepAxis::wire,      SweepAxis::overlap, SweepAxis::strategy,
                                   SweepAxis::theta,     SweepAxis::eta,     SweepAxis::group,
                                   SweepAxis::segments,  SweepAxis::streams};

constexpr double most_times = 1000;
constexpr std::size_t most_values = 1'000'000;
const char* const chosen = "auto";

// Reads a value of an axis that is a field. Throws InputError that does not name the axis.
void read_value(SweepAxis axis, const std::string& text, simulator::Question& question) {
  if (text == chosen) return;
  simulator::question_field(name(axis)).read(question, text);
  const simulator::AskedStrategies& strategies = question.strategies;
  if (question.wires.size() > 1 || strategies.all || strategies.named.size() > 1)
    throw InputError(fmt::format("{} is several values in one", in_quotes(text)),
                     "write each as a value of the list");
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& file, std::string_view version)
      : file_(file), map_(parse_yaml(text, file), file, "a sweep", keys()) {
    digest("paceline.sweep/1");
    digest(version);
  }

  [[nodiscard]] Sweep sweep() {
    sweep_.name = map_.text_or("sweep", "sweep");
    if (map_.has("engine"))
      sweep_.engine = map_.parsed(
          "engine", [](const std::string& text) { return simulator::engine_from_name(text); });
    digest(name(sweep_.engine));
    for (const auto& [axis, key] : axis_names) read_texts(axis, std::string(key));
    read_values();
    for (const std::vector<std::string>& texts : sweep_.axes) {
      for (const std::string& text : texts) digest(text);
      digest("");
    }
    sweep_.digest = runtime::to_hex(sum_.sum());
    check_size();
    return std::move(sweep_);
  }

 private:
  static std::vector<std::string> keys() {
    std::vector<std::string> keys = {"sweep", "engine"};
    for (const auto& [axis, key] : axis_names) keys.emplace_back(key);
    return keys;
  }

  // Texts are told from those behind them by their lengths.
  void digest(std::string_view text) {
    const std::string length = fmt::format("{}:", text.size());
    sum_.add(std::as_bytes(std::span(length)));
    sum_.add(std::as_bytes(std::span(text)));
  }

  // What may be a file is part of the job.
  void digest_file(const std::string& name_or_file) {
    if (names_a_file(name_or_file)) digest(read_input_file(name_or_file));
  }

  [[nodiscard]] YAML::Node node_of(SweepAxis axis) const {
    return map_.at(std::string(name(axis)));
  }

  void read_texts(SweepAxis axis, const std::string& key) {
    std::vector<std::string>& texts = sweep_.axes[to_size(axis)];
    if (!map_.has(key)) {
      texts = {otherwise(axis, key)};
      return;
    }
    const YAML::Node node = map_.at(key);
    if (!node.IsSequence()) {
      texts = {YamlMap::scalar(node, file_, key)};
    } else {
      for (const YAML::Node& entry : node) texts.push_back(YamlMap::scalar(entry, file_, key));
    }
    if (axis == SweepAxis::ranks) expand_ranges(texts);
    if (axis == SweepAxis::strategy) expand_all(texts);
    if (texts.empty()) fail(axis, "the list is empty", "write a value, or leave the key out");
    if (texts.size() > most_values)
      fail(axis, fmt::format("{} values", texts.size()),
           fmt::format("write at most {}", most_values));
    std::set<std::string_view> seen;
    for (const std::string& text : texts) {
      if (!seen.insert(text).second)
        fail(axis, fmt::format("{} is there twice", in_quotes(text)), "write each value once");
    }
  }

  std::string otherwise(SweepAxis axis, const std::string& key) const {
    switch (axis) {
      case SweepAxis::model:
      case SweepAxis::cluster:
      case SweepAxis::ranks:
      case SweepAxis::strategy:
        throw InputError(
            map_.place(), fmt::format("a sweep without {}", key),
            fmt::format("add a list, as in {}", key == "model"     ? "model: [resnet50]"
                                                : key == "cluster" ? "cluster: [jizhi-p40]"
                                                : key == "ranks"   ? "ranks: [8-1024]"
                                                                   : "strategy: [fused-ring]"));
      case SweepAxis::bandwidth:
      case SweepAxis::latency:
      case SweepAxis::compute:
      case SweepAxis::accumulate:
        return "1";
      case SweepAxis::precision:
        return "mixed";
      case SweepAxis::batch:
        return "64";
      case SweepAxis::profile:
      case SweepAxis::wire:
      case SweepAxis::overlap:
      case SweepAxis::theta:
      case SweepAxis::eta:
      case SweepAxis::group:
      case SweepAxis::segments:
      case SweepAxis::streams:
        return chosen;
    }
    return chosen;
  }

  // "8-64" stands for 8, 16, 32 and 64, as in `paceline scale --ranks`.
  void expand_ranges(std::vector<std::string>& texts) const {
    std::vector<std::string> expanded;
    for (const std::string& text : texts) {
      const std::size_t dash = text.find('-', 1);
      if (dash == std::string::npos) {
        expanded.push_back(text);
        continue;
      }
      const auto count = [&](const std::string& part) {
        return parsed(SweepAxis::ranks, [&] { return parse_count(part, 1, models::max_ranks); });
      };
      const std::int64_t first = count(text.substr(0, dash));
      const std::int64_t last = count(text.substr(dash + 1));
      if (last < first)
        fail(SweepAxis::ranks, fmt::format("{} goes down", in_quotes(text)),
             fmt::format("write {}-{}", last, first));
      for (std::int64_t ranks = first; ranks < last; ranks *= 2)
        expanded.push_back(std::to_string(ranks));
      expanded.push_back(std::to_string(last));
    }
    texts = std::move(expanded);
  }

  static void expand_all(std::vector<std::string>& texts) {
    if (texts != std::vector<std::string>{"all"}) return;
    texts.clear();
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      if (!strategy.library()) texts.emplace_back(strategy.name);
    }
  }

  [[noreturn]] void fail(SweepAxis axis, const std::string& problem,
                         const std::string& remedy) const {
    throw InputError(place_of(node_of(axis), file_), fmt::format("{}: {}", name(axis), problem),
                     remedy);
  }

  // An InputError of parse() gets the place of the axis.
  template <class F>
  auto parsed(SweepAxis axis, F parse) const -> decltype(parse()) {
    try {
      return parse();
    } catch (const InputError& error) {
      if (!error.place().file.empty() && names_a_file(error.place().file)) throw;
      fail(axis, error.problem(), error.remedy());
    }
  }

  template <class F>
  auto values(SweepAxis axis, F parse) const {
    std::vector<decltype(parse(std::string()))> values;
    for (const std::string& text : sweep_.axes[to_size(axis)])
      values.push_back(map_.has(std::string(name(axis))) ? parsed(axis, [&] { return parse(text); })
                                                         : parse(text));
    return values;
  }

  void read_values() {
    const auto factor = [](const std::string& text) {
      return parse_number(text, 1 / most_times, most_times);
    };
    sweep_.networks =
        values(SweepAxis::model, [](const std::string& text) { return load_network(text); });
    for (const std::string& text : sweep_.axes[to_size(SweepAxis::model)]) digest_file(text);
    read_places(values(SweepAxis::bandwidth, factor), values(SweepAxis::latency, factor),
                values(SweepAxis::compute, factor));
    sweep_.ranks = values(SweepAxis::ranks, [](const std::string& text) {
      return static_cast<int>(parse_count(text, 1, models::max_ranks));
    });
    for (const SweepAxis axis : field_axes)
      (void)values(axis, [axis](const std::string& text) {
        simulator::Question question;
        read_value(axis, text, question);
        return question;
      });
  }

  void read_places(const std::vector<double>& bandwidths, const std::vector<double>& latencies,
                   const std::vector<double>& speeds) {
    const std::vector<models::Cluster> clusters =
        values(SweepAxis::cluster, [](const std::string& text) { return load_cluster(text); });
    for (const std::string& text : sweep_.axes[to_size(SweepAxis::cluster)]) digest_file(text);
    for (const std::string& text : sweep_.axes[to_size(SweepAxis::profile)]) digest_file(text);
    for (const models::Cluster& cluster : clusters) {
      for (const std::string& text : sweep_.axes[to_size(SweepAxis::profile)]) {
        const auto load = [&] { return load_profile(text == chosen ? "" : text, cluster); };
        const std::optional<models::Profile> profile =
            map_.has("profile") ? parsed(SweepAxis::profile, load) : load();
        for (const double bandwidth : bandwidths) {
          for (const double latency : latencies) {
            const simulator::LinkFactors factors{bandwidth, latency};
            const auto linked = [&] { return simulator::with_links(cluster, factors); };
            SweepPlace place{parsed(SweepAxis::cluster, linked), std::nullopt};
            if (profile) place.profile = simulator::with_links(*profile, factors);
            for (const double speed : speeds) sweep_.places.push_back(with_speed(place, speed));
          }
        }
      }
    }
  }

  static SweepPlace with_speed(const SweepPlace& place, double speed) {
    if (speed == 1) return place;
    SweepPlace other{simulator::with_device(place.cluster, speed), std::nullopt};
    if (place.profile) other.profile = simulator::with_device(*place.profile, speed);
    return other;
  }

  void check_size() const {
    double cells = 1;
    for (const std::vector<std::string>& texts : sweep_.axes)
      cells *= static_cast<double>(texts.size());
    if (cells > static_cast<double>(most_sweep_cells))
      throw InputError(map_.place(), fmt::format("a sweep of {:g} cells", cells),
                       fmt::format("cut it into sweeps of at most {} each", most_sweep_cells));
  }

  const std::string& file_;
  YamlMap map_;
  Sweep sweep_;
  runtime::Checksummer sum_;
};

std::int64_t product(const Sweep& sweep, std::size_t first) {
  std::int64_t cells = 1;
  for (std::size_t axis = first; axis < sweep_axis_count; ++axis)
    cells *= std::ssize(sweep.axes[axis]);
  return cells;
}

}  // namespace

std::string_view name(SweepAxis axis) {
  return name_in(axis_names, axis);
}

std::int64_t Sweep::cells() const {
  return product(*this, 0);
}

std::int64_t Sweep::inner_cells() const {
  return product(*this, to_size(first_inner_axis));
}

Sweep parse_sweep(const std::string& text, const std::string& file, std::string_view version) {
  return Reader(text, file, version).sweep();
}

SweepCell cell_at(const Sweep& sweep, std::int64_t number) {
  SweepCell cell{};
  for (std::size_t axis = sweep_axis_count; axis-- > 0;) {
    const std::int64_t size = std::ssize(sweep.axes[axis]);
    cell[axis] = to_size(number % size);
    number /= size;
  }
  return cell;
}

simulator::Question question_at(const Sweep& sweep, const SweepCell& cell) {
  simulator::Question question;
  question.engine = sweep.engine;
  for (const SweepAxis axis : field_axes)
    read_value(axis, sweep.axes[to_size(axis)][cell[to_size(axis)]], question);
  return question;
}

}  // namespace paceline::job
