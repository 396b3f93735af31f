// paceline show: a network, a cluster, a schedule, a profile or the catalogue, for people.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "calibration/shipped_profiles.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/schedule.h"
#include "cli/output.h"
#include "cli/prediction_text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "experiments/reproduction.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/simgrid_xml.h"
#include "models/collective/catalogue.h"
#include "models/collective/draw.h"
#include "models/network/zoo.h"

namespace paceline::cli {
namespace {

using Json = nlohmann::ordered_json;

// Writes 25557032 as "25,557,032".
std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) {
    if (digits[i - 4] != '-') digits.insert(i - 3, ",");
  }
  return digits;
}

std::string shape_text(const models::ParameterTensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.shape)
    text += (text.empty() ? "" : "x") + fmt::format("{}", size);
  return text;
}

std::string parameters_text(const models::LayerWork& layer) {
  std::string text;
  for (const models::ParameterTensor& tensor : layer.parameters)
    text += (text.empty() ? "" : " + ") + shape_text(tensor);
  return text;
}

std::string flops(std::int64_t count) {
  return count == 0 ? "." : fmt::format("{:.4g} M", static_cast<double>(count) / 1e6);
}

void show_network(const std::string& name_or_file, bool json) {
  const models::NetworkWork network = job::load_network(name_or_file).work;
  if (json) {
    Json layers = Json::array();
    for (const models::LayerWork& layer : network.layers) {
      Json tensors = Json::array();
      for (const auto& tensor : layer.parameters)
        tensors.push_back(
            {{"name", tensor.name}, {"shape", tensor.shape}, {"elements", tensor.elements}});
      layers.push_back({{"name", layer.name},
                        {"kind", layer.kind},
                        {"output", to_text(layer.output)},
                        {"parameters", layer.parameter_elements()},
                        {"tensors", std::move(tensors)},
                        {"forward_flops", layer.forward_flops},
                        {"data_gradient_flops", layer.data_gradient_flops},
                        {"weight_gradient_flops", layer.weight_gradient_flops},
                        {"forward_read_elements", layer.forward_read},
                        {"forward_written_elements", layer.forward_written},
                        {"backward_read_elements", layer.backward_read},
                        {"backward_written_elements", layer.backward_written},
                        {"kept_elements", layer.kept}});
    }
    Json gradients = Json::array();
    for (const models::Gradient& g : network.gradients)
      gradients.push_back({{"name", g.name}, {"elements", g.elements}});
    const Json document = {{"schema", "paceline.network/1"},
                           {"name", network.name},
                           {"parameters", network.parameters()},
                           {"parameter_tensors", network.gradients.size()},
                           {"forward_flops", network.forward_flops()},
                           {"backward_flops", network.backward_flops()},
                           {"kept_elements", network.kept()},
                           {"input_elements", network.input_elements},
                           {"layers", std::move(layers)},
                           {"gradients", std::move(gradients)}};
    print("{}\n", document.dump(2));
    return;
  }
  Table table({{"layer", Align::left},
               {"kind", Align::left},
               {"output", Align::left},
               {"parameters", Align::left},
               {"count"},
               {"forward FLOPs"},
               {"data grad."},
               {"weight grad."},
               {"moved"},
               {"kept"}});
  for (const models::LayerWork& layer : network.layers) {
    const std::int64_t moved =
        layer.forward_read + layer.forward_written + layer.backward_read + layer.backward_written;
    table.add({layer.name, layer.kind, to_text(layer.output), parameters_text(layer),
               layer.parameters.empty() ? "." : grouped(layer.parameter_elements()),
               flops(layer.forward_flops), flops(layer.data_gradient_flops),
               flops(layer.weight_gradient_flops), moved == 0 ? "." : grouped(moved),
               layer.kept == 0 ? "." : grouped(layer.kept)});
  }
  print("{}\n{}", network.name, table.text());
  print(
      "\n{} parameters in {} tensors ({} in FP32); of one sample: {:.4g} GFLOP forward, {:.4g} "
      "GFLOP backward, {} activations kept\n",
      grouped(network.parameters()), network.gradients.size(),
      to_text(static_cast<double>(network.parameters()) * Bytes{4}),
      static_cast<double>(network.forward_flops()) / 1e9,
      static_cast<double>(network.backward_flops()) / 1e9, grouped(network.kept()));
  print(
      "A multiply-add is 2 FLOPs; gradients are produced from the last layer to the first, bias "
      "before weight.\n"
      "moved: activation elements read and written, forward and backward; kept: elements that "
      "forward keeps for backward.\n");
}

// The figures of a cluster as rows, both of a table and of JSON.
class FigureRows {
 public:
  template <class Q, class Text>
  void add(const char* part, const char* what, const Figure<Q>& figure, const char* json_unit,
           Text text) {
    double value = 0;
    double low = 0;
    double high = 0;
    if constexpr (std::is_same_v<Q, double>) {
      value = figure.value, low = figure.low, high = figure.high;
    } else {
      value = figure.value.value(), low = figure.low.value(), high = figure.high.value();
    }
    const std::string interval =
        low == high ? "" : fmt::format("{} - {}", text(figure.low), text(figure.high));
    table_.add({part, what, text(figure.value), interval, std::string(name(figure.provenance)),
                figure.source});
    json_.push_back({{"part", part},
                     {"what", what},
                     {"unit", json_unit},
                     {"value", value},
                     {"low", low},
                     {"high", high},
                     {"provenance", name(figure.provenance)},
                     {"source", figure.source}});
  }
  [[nodiscard]] std::string text() const { return table_.fitted(table_width()).text; }
  [[nodiscard]] const Json& json() const { return json_; }

 private:
  Table table_{{{"part", Align::left},
                {"figure", Align::left},
                {"value"},
                {"interval"},
                {"provenance", Align::left},
                {.title = "source", .align = Align::left, .wraps = true}}};
  Json json_ = Json::array();
};

void add_link(FigureRows& rows, const char* part, const models::Link& link) {
  rows.add(part, "line rate", link.line_rate, "bytes_per_s",
           [](BytesPerSecond v) { return to_text_bits(v); });
  rows.add(part, "bandwidth", link.bandwidth, "bytes_per_s",
           [](BytesPerSecond v) { return to_text(v); });
  rows.add(part, "latency", link.latency, "s", [](Seconds v) { return to_text(v); });
}

FigureRows figures(const models::Cluster& cluster) {
  FigureRows rows;
  const models::Device& device = cluster.device;
  const auto rate = [](FlopsPerSecond v) { return to_text(v); };
  const auto add_rate = [&](const char* what, const std::optional<Figure<FlopsPerSecond>>& figure) {
    if (figure) rows.add("device", what, *figure, "flops_per_s", rate);
  };
  rows.add("device", "FP32", device.fp32, "flops_per_s", rate);
  add_rate("TF32", device.tf32);
  add_rate("FP16", device.fp16);
  add_rate("FP16 matrix", device.fp16_tensor);
  add_rate("BF16", device.bf16);
  rows.add("device", "memory bandwidth", device.memory_bandwidth, "bytes_per_s",
           [](BytesPerSecond v) { return to_text(v); });
  rows.add("device", "memory", device.memory, "bytes", [](Bytes v) { return to_text(v); });
  const auto number = [](double v) { return fmt::format("{:.3g}", v); };
  rows.add("device", "compute efficiency", device.compute_efficiency, "1", number);
  rows.add("device", "memory efficiency", device.memory_efficiency, "1", number);
  if (cluster.platform == nullptr) {
    add_link(rows, "intra link", cluster.intra);
    add_link(rows, "NIC", cluster.nic);
  }
  if (cluster.hop_latency)
    rows.add("fabric", "hop latency", *cluster.hop_latency, "s",
             [](Seconds v) { return to_text(v); });
  if (cluster.host_link) add_link(rows, "host link", *cluster.host_link);
  if (cluster.storage)
    rows.add("node", "storage", *cluster.storage, "bytes_per_s",
             [](BytesPerSecond v) { return to_text(v); });
  if (cluster.decode_per_node)
    rows.add("node", "decode", *cluster.decode_per_node, "per_s",
             [](PerSecond v) { return to_text(v); });
  return rows;
}

std::string platform_text(const models::Platform& platform) {
  std::size_t longest = 0;
  const auto hosts = static_cast<int>(platform.hosts.size());
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      if (from != to) longest = std::max(longest, platform.route(from, to).size());
    }
  }
  return fmt::format("{} hosts, {} links, routes of up to {} links", hosts, platform.links.size(),
                     longest);
}

void show_platform(const std::string& file, bool json) {
  const models::Platform platform = models::parse_simgrid_xml(job::read_input_file(file), file);
  if (!json) {
    Table table({{"link", Align::left}, {"bandwidth"}, {"latency"}, {"shared", Align::left}});
    for (const models::PlatformLink& link : platform.links)
      table.add({link.name, to_text(link.bandwidth), to_text(link.latency),
                 link.is_shared ? "yes" : "no"});
    print("{}: a platform of {}\n\n{}", platform.name, platform_text(platform), table.text());
    return;
  }
  Json links = Json::array();
  for (const models::PlatformLink& link : platform.links)
    links.push_back({{"name", link.name},
                     {"bandwidth_bytes_per_s", link.bandwidth.value()},
                     {"latency_s", link.latency.value()},
                     {"is_shared", link.is_shared}});
  const Json document = {{"schema", "paceline.platform/1"},
                         {"name", platform.name},
                         {"hosts", platform.hosts},
                         {"links", std::move(links)}};
  print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

// Describes the links: "inside a node nvlink2; 8 x infiniband-ndr per node (affinity), flat
// fabric".
std::string links_text(const models::Cluster& cluster) {
  if (cluster.platform != nullptr)
    return fmt::format("platform {}: {}", cluster.platform->name, platform_text(*cluster.platform));
  return fmt::format("inside a node {}{}; {} x {} per node ({}), {} fabric", cluster.intra.name,
                     cluster.intra_kind == models::IntraKind::switched
                         ? ""
                         : fmt::format(" ({})", name(cluster.intra_kind)),
                     cluster.nics_per_node, cluster.nic.name,
                     cluster.nic_use == models::NicUse::striped ? "striped" : "affinity",
                     job::fabric_text(cluster));
}

void show_cluster(const std::string& name_or_file, bool json) {
  if (name_or_file.ends_with(".xml")) {
    show_platform(name_or_file, json);
    return;
  }
  const models::Cluster cluster = job::load_cluster(name_or_file);
  const FigureRows rows = figures(cluster);
  const char* use = cluster.nic_use == models::NicUse::striped ? "striped" : "affinity";
  if (json) {
    const Json document = {
        {"schema", "paceline.cluster/1"},
        {"name", cluster.name},
        {"description", cluster.description},
        {"nodes", cluster.nodes},
        {"ranks_per_node", cluster.ranks_per_node},
        {"ranks", cluster.ranks()},
        {"device", cluster.device.name},
        {"intra", cluster.intra.name},
        {"intra_topology", name(cluster.intra_kind)},
        {"nic", cluster.nic.name},
        {"nics_per_node", cluster.nics_per_node},
        {"nic_use", use},
        {"fabric", job::fabric_text(cluster)},
        {"placement", described_placement(cluster)},
        {"profile", cluster.profile.empty() ? Json(nullptr) : Json(cluster.profile)},
        {"source", cluster.source},
        {"figures", rows.json()}};
    print("{}\n", document.dump(2));
    return;
  }
  print("{}: {}\n", cluster.name, cluster.description);
  print("{} nodes x {} {} = {} ranks; {}\n", cluster.nodes, cluster.ranks_per_node,
        cluster.device.name, cluster.ranks(), links_text(cluster));
  if (cluster.placement != models::Placement::node_major || !cluster.slots.empty())
    print("placement: {}\n", described_placement(cluster));
  if (!cluster.profile.empty())
    print("calibrated by profile {} (paceline show profile {})\n", cluster.profile,
          cluster.profile);
  if (!cluster.source.empty()) print("source: {}\n", cluster.source);
  print("\n{}\nLinks are per direction.\n", rows.text());
}

void show_profile(const std::string& name_or_file) {
  const models::Profile profile =
      job::names_a_file(name_or_file)
          ? models::parse_profile(job::read_input_file(name_or_file), name_or_file)
          : calibration::shipped_profile(name_or_file);
  print("{}\n", models::to_json(profile));
}

// Adds one list of the catalogue, under its title, to the text and to the JSON.
void add_entries(std::string& text, Json& json, const char* title, const char* key,
                 const std::vector<std::pair<std::string, std::string>>& entries) {
  Table table({{.title = std::string("  ") + title, .align = Align::left},
               {.title = "", .align = Align::left, .wraps = true}});
  json[key] = Json::array();
  for (const auto& [name, description] : entries) {
    table.add({"  " + name, description});
    json[key].push_back({{"name", name}, {"description", description}});
  }
  text += (text.empty() ? "" : "\n") + table.fitted(table_width()).text;
}

void show_catalog(bool as_json) {
  std::string text;
  Json json = {{"schema", "paceline.catalog/1"}};
  const auto pairs = [](const auto& range, auto describe) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const auto& entry : range) entries.emplace_back(std::string(entry.name), describe(entry));
    return entries;
  };
  const auto described = [](const auto& entry) { return std::string(entry.description); };
  const auto with_source = [](const auto& entry) {
    return fmt::format("{} ({})", entry.summary, entry.source);
  };
  add_entries(text, json, "NETWORKS", "networks", pairs(models::zoo(), described));
  add_entries(text, json, "CLUSTERS", "clusters", pairs(models::catalog_clusters(), described));
  add_entries(text, json, "DEVICES", "devices", pairs(models::catalog_devices(), described));
  add_entries(text, json, "LINKS", "links", pairs(models::catalog_links(), described));
  add_entries(text, json, "SCHEDULES", "schedules",
              pairs(models::collective_catalogue(), with_source));
  add_entries(text, json, "STRATEGIES", "strategies",
              pairs(models::strategy_catalogue(), with_source));
  std::vector<std::pair<std::string, std::string>> profiles;
  for (const std::string& name : calibration::shipped_profile_names())
    profiles.emplace_back(name, calibration::shipped_profile(name).origin);
  add_entries(text, json, "PROFILES", "profiles", profiles);
  add_entries(
      text, json, "EXPERIMENTS", "experiments",
      pairs(experiments::experiments(), [](const auto& e) { return std::string(e.summary); }));
  if (as_json) {
    print("{}\n", json.dump(2));
  } else {
    print("{}", text);
  }
}

struct ShowScheduleOptions {
  std::string name;
  job::ScheduleOptions build;
};

void show_schedule(const ShowScheduleOptions& options) {
  const auto [algorithm, build, schedule] =
      job::load_schedule(models::collective_algorithm(options.name), options.build);
  print("{}: {} ({})\nsteps: {}\ntime:  {}\n\n{}", algorithm.name, algorithm.summary,
        algorithm.source, algorithm.steps,
        algorithm.time.empty() ? "no closed form" : algorithm.time, models::draw(schedule));
}

}  // namespace

void add_show(Command& app) {
  Command& show = app.add_command(
      "show",
      "A network, cluster, schedule, plan, profile, NCCL's choices or the catalogue, for people");
  const auto add_named = [&show](const char* what, const char* help, const char* names,
                                 auto action) {
    Command& command = show.add_command(what, help);
    const auto name = std::make_shared<std::string>();
    const auto json = std::make_shared<bool>(false);
    command.add_option("name", *name, names).required().value("NAME|FILE");
    command.add_flag("--json", *json, "Print one JSON document");
    command.on_run([name, json, action] { action(*name, *json); });
  };
  add_named("network", "Layer by layer: parameters, FLOPs, activations",
            "A network of the zoo, or a YAML file", show_network);
  add_named("cluster", "Nodes, links and devices with the source of each figure",
            "A cluster of the catalogue, a YAML file, or a SimGrid platform", show_cluster);
  add_named("profile", "A calibrated profile", "A shipped profile, or a JSON file",
            [](const std::string& name, bool) { show_profile(name); });

  Command& catalog = show.add_command("catalog", "All names that Paceline knows");
  const auto json = std::make_shared<bool>(false);
  catalog.add_flag("--json", *json, "Print one JSON document");
  catalog.on_run([json] { show_catalog(*json); });

  add_show_plan(show);
  add_show_recipes(show);
  add_show_schedules(show);
  add_show_nccl(show);
  Command& schedule = show.add_command("schedule", "The steps of a collective, drawn");
  const auto options = std::make_shared<ShowScheduleOptions>();
  schedule.add_option("name", options->name, "A schedule of the catalogue")
      .required()
      .value("NAME");
  add_schedule_options(schedule, options->build);
  schedule.on_run([options] { show_schedule(*options); });
}

}  // namespace paceline::cli
