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

}  // namespace

Figure<Seconds> layer_launch_of(Stack stack) {
  const std::string name = fmt::format("layer_launch_{}", name_in(stacks, stack));
  return catalog_figure(name.c_str(), seconds);
}

Effects catalog_effects(bool geforce) {
  return {.rank_spread = catalog_figure("rank_spread", factor),
          .jitter = catalog_figure("jitter", factor),
          .crowding = catalog_figure(geforce ? "crowding_geforce" : "crowding", factor),
          .slowdown = catalog_figure("slowdown", factor),
          .memory_bound = catalog_figure("memory_bound", factor),
          .collective_launch = catalog_figure("collective_launch", seconds),
          .layer_launch = catalog_figure("layer_launch", seconds),
          .unexplained = catalog_figure("unexplained", factor),
          .unexplained_doubling = catalog_figure("unexplained_doubling", factor),
          .unexplained_exposed = catalog_figure("unexplained_exposed", factor)};
}

// Processors start neither kernels nor collectives, and cool each for itself.
Effects catalog_processor_effects() {
  const std::string source = "on GPUs only";
  Effects effects = catalog_effects(false);
  effects.crowding = Figure<double>::exact(1, Provenance::assumed, source);
  effects.slowdown = Figure<double>::exact(0, Provenance::assumed, source);
  effects.collective_launch = Figure<Seconds>::exact(Seconds{0}, Provenance::assumed, source);
  effects.layer_launch = Figure<Seconds>::exact(Seconds{0}, Provenance::assumed, source);
  return effects;
}

Effects read_effects(const YAML::Node& node, const std::string& file, Effects effects) {
  const YamlMap map(
      node, file, "the effects",
      {"rank_spread", "jitter", "crowding", "slowdown", "memory_bound", "collective_launch",
       "layer_launch", "stack", "unexplained", "unexplained_doubling", "unexplained_exposed"});
  const Basis basis;
  override_figure(map, "rank_spread", basis, factor, effects.rank_spread, Zero::allowed);
  override_figure(map, "jitter", basis, factor, effects.jitter, Zero::allowed);
  override_figure(map, "crowding", basis, factor, effects.crowding);
  override_figure(map, "slowdown", basis, factor, effects.slowdown, Zero::allowed);
  override_figure(map, "memory_bound", basis, factor, effects.memory_bound, Zero::allowed);
  override_figure(map, "collective_launch", basis, seconds, effects.collective_launch,
                  Zero::allowed);
  if (map.has("stack") && map.has("layer_launch"))
    throw InputError(map.place_of_key("stack"), "a stack, and layer_launch, which it says",
                     "leave one of the two out");
  if (map.has("stack"))
    effects.layer_launch = layer_launch_of(map.parsed(
        "stack", [](const std::string& text) { return value_named(stacks, "stack", text); }));
  override_figure(map, "layer_launch", basis, seconds, effects.layer_launch, Zero::allowed);
  override_figure(map, "unexplained", basis, factor, effects.unexplained, Zero::allowed);
  override_figure(map, "unexplained_doubling", basis, factor, effects.unexplained_doubling,
                  Zero::allowed);
  override_figure(map, "unexplained_exposed", basis, factor, effects.unexplained_exposed,
                  Zero::allowed);
  return effects;
}

}  // namespace paceline::models
