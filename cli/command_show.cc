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
#include "cli/output_format.h"
#include "cli/prediction_text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/json_records.h"
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

Table layers_table(const models::NetworkWork& network) {
  Table table({{"layer", Align::left},
               {"kind", Align::left},
               {"output", Align::left},
               {"parameters", Align::left, 1},
               {"count"},
               {"forward FLOPs"},
               {"data grad.", Align::right, 5},
               {"weight grad.", Align::right, 4},
               {"moved", Align::right, 2},
               {"kept", Align::right, 3}});
  for (const models::LayerWork& layer : network.layers) {
    const std::int64_t moved =
        layer.forward_read + layer.forward_written + layer.backward_read + layer.backward_written;
    table.add({layer.name, layer.kind, to_text(layer.output), parameters_text(layer),
               layer.parameters.empty() ? "." : grouped(layer.parameter_elements()),
               flops(layer.forward_flops), flops(layer.data_gradient_flops),
               flops(layer.weight_gradient_flops), moved == 0 ? "." : grouped(moved),
               layer.kept == 0 ? "." : grouped(layer.kept)});
  }
  return table;
}

std::string network_text(const models::NetworkWork& network, int width) {
  const Table::Fitted layers = layers_table(network).fitted(width);
  return fmt::format(
      "{}\n{}{}\n{} parameters in {} tensors ({} in FP32); of one sample{}: {:.4g} GFLOP forward, "
      "{:.4g} GFLOP backward, {} activations kept\n"
      "A multiply-add is 2 FLOPs; gradients are produced from the last layer to the first, bias "
      "before weight.\n"
      "moved: activation elements read and written, forward and backward; kept: elements that "
      "forward keeps for backward.\n",
      network.name, layers.text, layers.not_shown(), grouped(network.parameters()),
      network.gradients.size(), to_text(static_cast<double>(network.parameters()) * Bytes{4}),
      network.sequence > 0 ? fmt::format(" of {} tokens", network.sequence) : "",
      static_cast<double>(network.forward_flops()) / 1e9,
      static_cast<double>(network.backward_flops()) / 1e9, grouped(network.kept()));
}

void show_network(const std::string& name_or_file, std::optional<std::int64_t> sequence, bool wide,
                  const OutputFormat& format) {
  const models::NetworkWork network = job::load_network(name_or_file, sequence).work;
  print_answer(format, {.document = [&] { return models::network_document().json(network); },
                        .records = {{"layers"}},
                        .markdown = [&] { return layers_table(network).markdown(); },
                        .text = [&](int width) { return network_text(network, width); },
                        .wide = wide});
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

Table figures_table(const models::Cluster& cluster) {
  Table table({{"part", Align::left},
               {"figure", Align::left},
               {"value"},
               {"interval", Align::right, 2},
               {"provenance", Align::left, 1},
               {.title = "source", .align = Align::left, .wraps = true}});
  for_each_figure(cluster, [&table](const char* part, const char* what, const auto& figure) {
    const std::string interval =
        figure.low == figure.high
            ? ""
            : fmt::format("{} - {}", figure_text(what, figure.low), figure_text(what, figure.high));
    table.add({part, what, figure_text(what, figure.value), interval,
               std::string(name(figure.provenance)), figure.source});
  });
  return table;
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

Table links_table(const models::Platform& platform) {
  Table table({{"link", Align::left}, {"bandwidth"}, {"latency"}, {"shared", Align::left}});
  for (const models::PlatformLink& link : platform.links)
    table.add(
        {link.name, to_text(link.bandwidth), to_text(link.latency), link.is_shared ? "yes" : "no"});
  return table;
}

void show_platform(const std::string& file, const OutputFormat& format) {
  const models::Platform platform = models::parse_simgrid_xml(job::read_input_file(file), file);
  print_answer(format, {.document = [&] { return models::platform_document().json(platform); },
                        .records = {{"links"}},
                        .markdown = [&] { return links_table(platform).markdown(); },
                        .text =
                            [&](int) {
                              return fmt::format("{}: a platform of {}\n\n{}", platform.name,
                                                 platform_text(platform),
                                                 links_table(platform).text());
                            },
                        .wide = true});
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

std::string cluster_text(const models::Cluster& cluster, int width) {
  std::string text = fmt::format("{}: {}\n{} nodes x {} {} = {} ranks; {}\n", cluster.name,
                                 cluster.description, cluster.nodes, cluster.ranks_per_node,
                                 cluster.device.name, cluster.ranks(), links_text(cluster));
  if (cluster.placement != models::Placement::node_major || !cluster.slots.empty())
    text += fmt::format("placement: {}\n", described_placement(cluster));
  if (!cluster.profile.empty())
    text += fmt::format("calibrated by profile {} (paceline show profile {})\n", cluster.profile,
                        cluster.profile);
  if (!cluster.source.empty()) text += fmt::format("source: {}\n", cluster.source);
  const Table::Fitted figures = figures_table(cluster).fitted(width);
  return text +
         fmt::format("\n{}{}\nLinks are per direction.\n", figures.text, figures.not_shown());
}

void show_cluster(const std::string& name_or_file, bool wide, const OutputFormat& format) {
  if (name_or_file.ends_with(".xml")) return show_platform(name_or_file, format);
  const models::Cluster cluster = job::load_cluster(name_or_file);
  print_answer(format, {.document = [&] { return models::cluster_document().json(cluster); },
                        .records = {{"figures"}, {"name"}},
                        .markdown = [&] { return figures_table(cluster).markdown(); },
                        .text = [&](int width) { return cluster_text(cluster, width); },
                        .wide = wide});
}

void show_profile(const std::string& name_or_file) {
  const models::Profile profile =
      job::names_a_file(name_or_file)
          ? models::parse_profile(job::read_input_file(name_or_file), name_or_file)
          : calibration::shipped_profile(name_or_file);
  print("{}\n", models::to_json(profile));
}

Table table_of(const CatalogList& list, const char* indent) {
  Table table({{.title = indent + list.title, .align = Align::left},
               {.title = "", .align = Align::left, .wraps = true}});
  for (const CatalogEntry& entry : list.entries)
    table.add({indent + entry.name, entry.description});
  return table;
}

void show_catalog(const OutputFormat& format) {
  const std::vector<CatalogList> lists = catalog();
  const auto of_each = [&](const auto& text_of) {
    std::string text;
    for (const CatalogList& list : lists) text += (text.empty() ? "" : "\n") + text_of(list);
    return text;
  };
  print_answer(
      format,
      {.document = [&] { return catalog_document().json(lists); },
       .csv = [&] { return to_csv(lists); },
       .markdown =
           [&] { return of_each([](const auto& list) { return table_of(list, "").markdown(); }); },
       .text =
           [&](int width) {
             return of_each(
                 [width](const auto& list) { return table_of(list, "  ").fitted(width).text; });
           }});
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
    const auto format = std::make_shared<OutputFormat>();
    command.add_option("name", *name, names).required().value("NAME|FILE");
    add_output_formats(command, *format);
    command.on_run([name, format, action] {
      check_output_format(*format, {{"NAME", *name, job::PathUse::name_or_input}});
      action(*name, *format);
    });
    return command;
  };
  const auto question = std::make_shared<simulator::Question>();
  const auto wide = std::make_shared<bool>(false);
  Command& network =
      add_named("network", "Layer by layer: parameters, FLOPs, activations",
                "A network of the zoo, or a YAML file",
                [question, wide](const std::string& name, const OutputFormat& format) {
                  show_network(name, question->sequence, *wide, format);
                });
  add_field(network, *question, "sequence");
  add_wide_option(network, *wide);
  Command& cluster = add_named("cluster", "Nodes, links and devices with the source of each figure",
                               "A cluster of the catalogue, a YAML file, or a SimGrid platform",
                               [wide](const std::string& name, const OutputFormat& format) {
                                 show_cluster(name, *wide, format);
                               });
  add_wide_option(cluster, *wide);

  Command& profile = show.add_command("profile", "A calibrated profile, as JSON");
  const auto profile_name = std::make_shared<std::string>();
  const auto is_json = std::make_shared<bool>(false);
  profile.add_option("name", *profile_name, "A shipped profile, or a JSON file")
      .required()
      .value("NAME|FILE");
  profile.add_flag("--json", *is_json, "Print one JSON document, as without it");
  profile.on_run([profile_name] { show_profile(*profile_name); });

  Command& catalog = show.add_command("catalog", "All names that Paceline knows");
  const auto format = std::make_shared<OutputFormat>();
  add_output_formats(catalog, *format);
  catalog.on_run([format] {
    check_output_format(*format);
    show_catalog(*format);
  });

  add_show_clusters(show);
  add_show_plan(show);
  add_show_dag(show);
  add_show_recipes(show);
  add_show_schema(show);
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
