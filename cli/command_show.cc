// paceline show: a network, a cluster, a schedule, a profile or the catalogue, for people.
#include <fmt/core.h>

#include <algorithm>

#include "calibration/shipped_profiles.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/schedule.h"
#include "cli/output.h"
#include "cli/prediction_text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "models/cluster/cluster_figures.h"
#include "models/cluster/cluster_json.h"
#include "models/cluster/placement.h"
#include "models/cluster/simgrid_xml.h"
#include "models/collective/catalogue.h"
#include "models/collective/draw.h"
#include "models/network/network_json.h"

namespace paceline::cli {
namespace {

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

void show_network(const std::string& name_or_file, const std::string& sequence, bool json) {
  const models::NetworkWork network = job::load_network(name_or_file, sequence).work;
  if (json) {
    print("{}\n", to_json(network));
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
      "\n{} parameters in {} tensors ({} in FP32); of one sample{}: {:.4g} GFLOP forward, {:.4g} "
      "GFLOP backward, {} activations kept\n",
      grouped(network.parameters()), network.gradients.size(),
      to_text(static_cast<double>(network.parameters()) * Bytes{4}),
      network.sequence > 0 ? fmt::format(" of {} tokens", network.sequence) : "",
      static_cast<double>(network.forward_flops()) / 1e9,
      static_cast<double>(network.backward_flops()) / 1e9, grouped(network.kept()));
  print(
      "A multiply-add is 2 FLOPs; gradients are produced from the last layer to the first, bias "
      "before weight.\n"
      "moved: activation elements read and written, forward and backward; kept: elements that "
      "forward keeps for backward.\n");
}

std::string figure_text(const char* what, BytesPerSecond value) {
  return std::string_view(what) == "line rate" ? to_text_bits(value) : to_text(value);
}
std::string figure_text(const char*, double value) {
  return fmt::format("{:.3g}", value);
}
template <class Q>
std::string figure_text(const char*, Q value) {
  return to_text(value);
}

std::string figures_text(const models::Cluster& cluster) {
  Table table({{"part", Align::left},
               {"figure", Align::left},
               {"value"},
               {"interval"},
               {"provenance", Align::left},
               {.title = "source", .align = Align::left, .wraps = true}});
  for_each_figure(cluster, [&table](const char* part, const char* what, const auto& figure) {
    const std::string interval =
        figure.low == figure.high
            ? ""
            : fmt::format("{} - {}", figure_text(what, figure.low), figure_text(what, figure.high));
    table.add({part, what, figure_text(what, figure.value), interval,
               std::string(name(figure.provenance)), figure.source});
  });
  return table.fitted(table_width()).text;
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
  if (json) {
    print("{}\n", to_json(platform));
    return;
  }
  Table table({{"link", Align::left}, {"bandwidth"}, {"latency"}, {"shared", Align::left}});
  for (const models::PlatformLink& link : platform.links)
    table.add(
        {link.name, to_text(link.bandwidth), to_text(link.latency), link.is_shared ? "yes" : "no"});
  print("{}: a platform of {}\n\n{}", platform.name, platform_text(platform), table.text());
}

// Describes the links: "inside a node nvlink2; 8 x infiniband-ndr per node (affinity), flat
// fabric".
std::string links_text(const models::Cluster& cluster) {
  if (cluster.platform != nullptr)
    return fmt::format("platform {}: {}", cluster.platform->name, platform_text(*cluster.platform));
  const std::string inside = fmt::format("inside a node {}{}", cluster.intra.name,
                                         cluster.intra_kind == models::IntraKind::switched
                                             ? ""
                                             : fmt::format(" ({})", name(cluster.intra_kind)));
  if (!cluster.has_nic()) return inside + ", no NIC";
  return fmt::format("{}; {} x {} per node ({}), {} fabric", inside, cluster.nics_per_node,
                     cluster.nic.name, name(cluster.nic_use), described_fabric(cluster));
}

void show_cluster(const std::string& name_or_file, bool json) {
  if (name_or_file.ends_with(".xml")) {
    show_platform(name_or_file, json);
    return;
  }
  const models::Cluster cluster = job::load_cluster(name_or_file);
  if (json) {
    print("{}\n", to_json(cluster));
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
  print("\n{}\nLinks are per direction.\n", figures_text(cluster));
}

void show_profile(const std::string& name_or_file) {
  const models::Profile profile =
      job::names_a_file(name_or_file)
          ? models::parse_profile(job::read_input_file(name_or_file), name_or_file)
          : calibration::shipped_profile(name_or_file);
  print("{}\n", models::to_json(profile));
}

void show_catalog(bool as_json) {
  const std::vector<CatalogList> lists = catalog();
  if (as_json) {
    print("{}\n", to_json(lists));
    return;
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    Table table({{.title = "  " + lists[i].title, .align = Align::left},
                 {.title = "", .align = Align::left, .wraps = true}});
    for (const CatalogEntry& entry : lists[i].entries)
      table.add({"  " + entry.name, entry.description});
    print("{}{}", i == 0 ? "" : "\n", table.fitted(table_width()).text);
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
                                 auto action) -> Command& {
    Command& command = show.add_command(what, help);
    const auto name = std::make_shared<std::string>();
    const auto json = std::make_shared<bool>(false);
    command.add_option("name", *name, names).required().value("NAME|FILE");
    command.add_flag("--json", *json, "Print one JSON document");
    command.on_run([name, json, action] { action(*name, *json); });
    return command;
  };
  const auto sequence = std::make_shared<std::string>();
  Command& network = add_named("network", "Layer by layer: parameters, FLOPs, activations",
                               "A network of the zoo, or a YAML file",
                               [sequence](const std::string& name, bool as_json) {
                                 show_network(name, *sequence, as_json);
                               });
  add_sequence_option(network, *sequence);
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
