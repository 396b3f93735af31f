// Tests: tests/models/cluster_effects_test.cc.
#include "models/cluster/effects_reader.h"

#include <fmt/core.h>

#include "models/base/names.h"
#include "models/cluster/catalog_file.h"
#include "models/cluster/figure_reader.h"

namespace paceline::models {
namespace {

// A standard deviation, a factor or a share; none is more than 10.
constexpr auto factor = [](const std::string& s) { return parse_share(s, 0, 10); };

// The figure of one entry of the catalogue.
template <class F>
auto catalog_figure(const char* name, F parse) {
  const CatalogFile file("effects.yaml", "effects");
  YAML::Node entry = file.entry(name, "effect");
  entry.remove("description");
  YAML::Node mapping;
  mapping[name] = entry;
  return read_figure(YamlMap(mapping, file.file(), "the effects", {name}), name, {}, parse,
                     Zero::allowed);
}

// GPUs of this year and later have the priors of today's stacks where nobody names a stack.
constexpr int first_year_of_today = 2020;

// Processors launch no kernels and no collectives, and cool each for itself.
constexpr const char* on_gpus_only = "on GPUs only";

Effects effects_of(bool geforce) {
  const auto none = Figure<Seconds>::exact(Seconds{0}, Provenance::published,
                                           "the time on the device holds the host's");
  return {.rank_spread = catalog_figure("rank_spread", factor),
          .jitter = catalog_figure("jitter", factor),
          .crowding = catalog_figure(geforce ? "crowding_geforce" : "crowding", factor),
          .slowdown = catalog_figure("slowdown", factor),
          .memory_bound = catalog_figure("memory_bound", factor),
          .collective_launch = catalog_figure("collective_launch", seconds),
          .layer_launch = catalog_figure("layer_launch", seconds),
          .mixed_launch_share = catalog_figure("mixed_launch_share", factor).value,
          .host_launch = none,
          .host_launch_transformer = none,
          .host_update = catalog_figure("host_update", bandwidth),
          .unexplained = catalog_figure("unexplained", factor),
          .unexplained_doubling = catalog_figure("unexplained_doubling", factor),
          .unexplained_exposed = catalog_figure("unexplained_exposed", factor)};
}

// Gives layers the times of a stack of today. The host's are the catalogue's entries host_launch + `word`
// and, where transformers differ, host_launch_transformer + `word`.
void take_host_launch(const std::string& word, bool transformers_differ, Effects& effects) {
  effects.layer_launch = catalog_figure("layer_floor", seconds);
  effects.mixed_launch_share = 1;
  effects.host_launch = catalog_figure(("host_launch" + word).c_str(), seconds);
  effects.host_launch_transformer =
      transformers_differ ? catalog_figure(("host_launch_transformer" + word).c_str(), seconds)
                          : effects.host_launch;
}

}  // namespace

void take_stack(Stack stack, Effects& effects) {
  take_host_launch(fmt::format("_{}", name_in(stacks, stack)), stack == Stack::eager, effects);
}

Effects catalog_effects(const Device& device) {
  Effects effects = effects_of(device.cooling == Cooling::geforce);
  if (device.year.value_or(0) >= first_year_of_today) take_host_launch("", true, effects);
  return effects;
}

Effects catalog_processor_effects() {
  Effects effects = effects_of(false);
  const auto no_time = Figure<Seconds>::exact(Seconds{0}, Provenance::assumed, on_gpus_only);
  effects.crowding = Figure<double>::exact(1, Provenance::assumed, on_gpus_only);
  effects.slowdown = Figure<double>::exact(0, Provenance::assumed, on_gpus_only);
  effects.collective_launch = no_time;
  effects.layer_launch = no_time;
  effects.host_launch = no_time;
  effects.host_launch_transformer = no_time;
  return effects;
}

Effects read_effects(const YAML::Node& node, const std::string& file, Effects effects) {
  const YamlMap map(node, file, "the effects",
                    {"rank_spread", "jitter", "crowding", "slowdown", "memory_bound",
                     "collective_launch", "layer_launch", "host_launch", "host_update", "stack",
                     "unexplained", "unexplained_doubling", "unexplained_exposed"});
  const Basis basis;
  override_figure(map, "rank_spread", basis, factor, effects.rank_spread, Zero::allowed);
  override_figure(map, "jitter", basis, factor, effects.jitter, Zero::allowed);
  override_figure(map, "crowding", basis, factor, effects.crowding);
  override_figure(map, "slowdown", basis, factor, effects.slowdown, Zero::allowed);
  override_figure(map, "memory_bound", basis, factor, effects.memory_bound, Zero::allowed);
  override_figure(map, "collective_launch", basis, seconds, effects.collective_launch,
                  Zero::allowed);
  for (const char* said : {"layer_launch", "host_launch"}) {
    if (map.has("stack") && map.has(said))
      throw InputError(map.place_of_key("stack"),
                       fmt::format("a stack, and {}, which it says", said),
                       "leave one of the two out");
  }
  if (map.has("stack"))
    take_stack(
        map.parsed("stack",
                   [](const std::string& text) { return value_named(stacks, "stack", text); }),
        effects);
  override_figure(map, "layer_launch", basis, seconds, effects.layer_launch, Zero::allowed);
  override_figure(map, "host_launch", basis, seconds, effects.host_launch, Zero::allowed);
  if (map.has("host_launch")) effects.host_launch_transformer = effects.host_launch;
  override_figure(map, "host_update", basis, bandwidth, effects.host_update);
  override_figure(map, "unexplained", basis, factor, effects.unexplained, Zero::allowed);
  override_figure(map, "unexplained_doubling", basis, factor, effects.unexplained_doubling,
                  Zero::allowed);
  override_figure(map, "unexplained_exposed", basis, factor, effects.unexplained_exposed,
                  Zero::allowed);
  return effects;
}

}  // namespace paceline::models
