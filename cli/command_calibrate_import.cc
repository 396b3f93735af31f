// paceline calibrate import: another tool's output as a profile or a cluster description.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "calibration/fit/fit_json.h"
#include "calibration/fit/plot.h"
#include "calibration/fit/spread.h"
#include "calibration/import/import_file.h"
#include "calibration/import/import_profile.h"
#include "calibration/import/machine_cluster.h"
#include "calibration/import/table_text.h"
#include "calibration/import/traced_network.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "models/network/yaml.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string file;
  std::string format = "auto";
  std::string model;
  std::string ranks;
  std::string batch;
  std::string precision = "mixed";
  std::string wire;
  std::string collective;
  std::string library;
  std::string cluster;
  std::string name;
  std::string out;
  std::string plot;
  std::string html;
  std::string nodes;
  std::string device;
  std::string nic;
  std::string intra_link;
  std::string cluster_out;
  std::string network_out;
  bool intra = false;
  bool force = false;
};

// A table has at most this many rows; more are summed up in one line.
constexpr std::size_t most_rows = 40;

calibration::ImportContext context_of(const Options& options, const models::Network* network) {
  calibration::ImportContext context;
  context.file = calibration::printable(std::filesystem::path(options.file).filename().string());
  context.name = calibration::printable(
      options.name.empty() ? std::filesystem::path(options.file).stem().string() : options.name);
  context.cluster = "unknown";
  context.device = "unknown";
  if (!options.cluster.empty()) {
    const models::Cluster cluster = job::load_cluster(options.cluster);
    context.cluster = cluster.name;
    context.device = cluster.device.name;
    context.hosts_per_node = cluster.hosts_per_node;
  }
  if (network != nullptr) context.network = network->name();
  context.precision = job::parsing_option(
      "--precision", [&] { return models::precision_from_name(options.precision); });
  constexpr int most = 1'000'000;
  constexpr int usual_batch = 64;
  context.batch_per_rank =
      job::optional_count("--batch", options.batch, most).value_or(usual_batch);
  context.is_batch_given = !options.batch.empty();
  context.is_of_catalogue = !options.model.empty() && !job::names_a_file(options.model);
  context.ranks = job::optional_count("--ranks", options.ranks, most).value_or(0);
  if (!options.wire.empty())
    context.wire =
        job::parsing_option("--wire", [&] { return models::wire_type_from_name(options.wire); });
  if (!options.library.empty()) context.library = calibration::printable(options.library);
  context.nodes = job::optional_count("--nodes", options.nodes, most).value_or(0);
  if (options.intra && context.nodes > 1)
    throw InputError({"--intra"}, fmt::format("one node, and --nodes says {}", context.nodes),
                     "leave one of the two out");
  if (options.intra) context.nodes = 1;
  return context;
}

void print_curve(const calibration::FittedCurve& fitted) {
  const calibration::Fit& fit = fitted.fit;
  print_lines("{}: {} sample{} of {} size{}\n", fitted.curve.what, fitted.curve.samples.size(),
              fitted.curve.samples.size() == 1 ? "" : "s", fit.sizes.size(),
              fit.sizes.size() == 1 ? "" : "s");
  Table table({{"size"}, {"measured"}, {"calibrated"}, {"error"}, {"", Align::left}});
  for (const calibration::FittedSize& size : fit.sizes) {
    if (fit.sizes.size() > most_rows) break;
    table.add({to_text_binary(size.bytes), to_text(size.measured), to_text(size.fitted),
               signed_percent(size.measured / std::max(size.fitted, 1e-3 * size.measured) - 1),
               size.outlier ? "outlier" : ""});
  }
  if (fit.sizes.size() <= most_rows) print_lines("{}", table.text());
  Table pieces({{"from"}, {"alpha"}, {"(90 %)"}, {"1 / beta"}, {"(90 %)"}, {"jump"}});
  const auto rate = [](SecondsPerByte beta) {
    return beta > SecondsPerByte{0} ? to_text(1.0 / beta) : std::string("unlimited");
  };
  for (std::size_t i = 0; i < fit.pieces.size(); ++i) {
    const models::CurvePiece& piece = fit.pieces[i];
    pieces.add({to_text_binary(piece.from), to_text(piece.alpha.value),
                fmt::format("{} to {}", to_text(piece.alpha.low), to_text(piece.alpha.high)),
                rate(piece.beta.value),
                fmt::format("{} to {}", rate(piece.beta.high), rate(piece.beta.low)),
                i == 0                  ? ""
                : fit.jumps[i - 1] == 0 ? "none"
                                        : signed_percent(fit.jumps[i - 1])});
  }
  const double spread = calibration::relative_spread(fitted.curve.samples);
  print_lines(
      "calibrated, with 90 % intervals:\n{}residual {:.1f} %{}\n", pieces.blocks(table_width()),
      100 * fit.residual,
      spread > 0 ? fmt::format(", and samples of one size differ by {:.1f} %", 100 * spread) : "");
  for (const std::string& complaint : fit.complaints) print_lines("  beware: {}\n", complaint);
  print_lines("\n");
}

void print_layers(const calibration::Imported& imported, const models::Network& network) {
  Seconds forward{0};
  Seconds backward{0};
  Table table({{"layer", Align::left}, {"forward"}, {"backward"}});
  for (const calibration::ImportedLayer& layer : imported.layers) {
    forward += layer.forward.value;
    backward += layer.backward.value;
    if (imported.layers.size() <= most_rows)
      table.add({layer.layer, to_text(layer.forward.value), to_text(layer.backward.value)});
  }
  if (imported.layers.size() > most_rows) {
    std::vector<const calibration::ImportedLayer*> longest;
    for (const calibration::ImportedLayer& layer : imported.layers) longest.push_back(&layer);
    std::stable_sort(longest.begin(), longest.end(), [](const auto* a, const auto* b) {
      return a->forward.value + a->backward.value > b->forward.value + b->backward.value;
    });
    constexpr std::size_t shown = 10;
    for (std::size_t i = 0; i < shown; ++i)
      table.add({longest[i]->layer, to_text(longest[i]->forward.value),
                 to_text(longest[i]->backward.value)});
    table.add({fmt::format("and {} more", longest.size() - shown), "", ""});
  }
  table.add({"together", to_text(forward), to_text(backward)});
  print_lines("{} of {} layers of {}, {} iteration{}, measured:\n{}\n", imported.layers.size(),
              network.layers().size(), network.name(), imported.iterations,
              imported.iterations == 1 ? "" : "s", table.text());
}

void print_tensors(const calibration::Imported& imported) {
  Table table(
      {{"tensor", Align::left}, {"size"}, {"ready after"}, {"ranks apart"}, {"all-reduce"}});
  const std::size_t shown = std::min(imported.tensors.size(), most_rows);
  for (std::size_t i = 0; i < shown; ++i) {
    const calibration::ReadyTensor& tensor = imported.tensors[i];
    table.add({in_quotes(tensor.tensor), tensor.bytes > Bytes{0} ? to_text(tensor.bytes) : "?",
               to_text(tensor.ready), to_text(tensor.apart), to_text(tensor.all_reduce)});
  }
  if (imported.tensors.size() > shown)
    table.add({fmt::format("and {} more", imported.tensors.size() - shown), "", "", "", ""});
  print_lines("{} tensor{}, {} iteration{}, measured:\n{}\n", imported.tensors.size(),
              imported.tensors.size() == 1 ? "" : "s", imported.iterations,
              imported.iterations == 1 ? "" : "s", table.text());
}

void print_throughputs(const calibration::Imported& imported) {
  for (const calibration::ImportedThroughput& throughput : imported.throughputs) {
    const Figure<PerSecond>& samples = throughput.samples;
    const std::string interval =
        samples.low < samples.high
            ? fmt::format(" (90 %: {} to {})", to_text(samples.low), to_text(samples.high))
            : "";
    print_lines(
        "{}{}: {}{}, measured: {}\n\n",
        throughput.benchmark.empty() ? "a run" : throughput.benchmark,
        throughput.global_batch > 0 ? fmt::format(", batch {:.0f}", throughput.global_batch) : "",
        to_text(samples.value), interval, samples.source);
  }
}

// "fit.svg" for one curve; "fit-2.svg" for the second of several.
std::string plot_path(const std::string& path, std::size_t index) {
  if (index == 0) return path;
  const std::filesystem::path given(path);
  std::filesystem::path numbered = given.parent_path() / given.stem();
  numbered += fmt::format("-{}", index + 1);
  numbered += given.extension();
  return numbered.string();
}

void write_plots(const std::string& path, const calibration::ImportedProfile& result,
                 const calibration::Imported& imported, const std::string& file) {
  for (std::size_t i = 0; i < result.curves.size(); ++i) {
    const calibration::FittedCurve& fitted = result.curves[i];
    const calibration::PlotText text{
        .title = fmt::format("{} ({}, {})", fitted.curve.what, file, imported.tool)};
    const std::string target = plot_path(path, i);
    job::write_output_file(target, calibration::fit_svg(fitted.curve.samples, fitted.fit, text));
    notice("plot written to {}\n", target);
  }
}

void write_report_of(const calibration::ImportedProfile& result,
                     const calibration::Imported& imported, const std::string& profile,
                     const std::string& file, const Options& options, const Words& words) {
  const std::string origin = file + ", " + imported.tool;
  calibration::Fits fits{result.profile.name, origin, {}, imported.remarks};
  for (const calibration::FittedCurve& fitted : result.curves)
    fits.curves.push_back({fitted.curve.samples, fitted.fit, fitted.curve.what, origin});
  write_report(options.html, words, fmt::format("{}, {}", file, imported.tool),
               {{"result", calibration::fits_document().text(fits)}, {"profile", profile}});
}

calibration::MachineContext machine_context_of(const Options& options,
                                               const calibration::ImportContext& context,
                                               const calibration::Imported& imported) {
  return {.file = context.file,
          .name = context.name,
          .tool = imported.tool + (imported.version.empty() ? "" : " " + imported.version),
          .nodes = context.nodes,
          .device = options.device,
          .nic = options.nic,
          .intra = options.intra_link};
}

// A file that tells of a machine: its description, and what is missing in it.
void describe(const Options& options, const calibration::ImportContext& context,
              const calibration::Imported& imported) {
  for (const auto& [option, value] :
       {std::pair{"--out", &options.out}, {"--plot", &options.plot}, {"--html", &options.html}}) {
    if (!value->empty())
      throw InputError({option}, context.file + " tells of a machine, and of no times",
                       "give --cluster-out");
  }
  const calibration::ClusterDescription description = calibration::cluster_description(
      *imported.machine, machine_context_of(options, context, imported));
  print("{}: {}{}\n\n{}\n", context.file, imported.tool,
        imported.version.empty() ? "" : " " + imported.version, description.yaml);
  for (const std::string& remark : imported.remarks) print_lines("note: {}\n", remark);
  if (!description.missing.empty())
    print_lines("note: to be filled in before this is a cluster: {}\n",
                fmt::format("{}", fmt::join(description.missing, ", ")));
  if (options.cluster_out.empty()) return;
  job::write_output_file(options.cluster_out, description.yaml);
  notice("cluster {} written to {}\n", context.name, options.cluster_out);
}

std::string network_name(const Options& options) {
  const std::string name = calibration::printable(
      options.name.empty() ? std::filesystem::path(options.file).stem().string() : options.name);
  if (!models::is_name(name))
    throw InputError({"--name"}, in_quotes(name) + " is no name of a network", "give --name");
  return name;
}

void run(const Options& options, const Words& words) {
  if (options.file.empty())
    throw InputError("FILE is missing",
                     "give another tool's output, as in calibrate import all_reduce.txt");
  job::check_paths(
      {job::output_path("--out", options.out, job::FileKind::profile),
       job::output_path("--plot", options.plot, job::FileKind::picture),
       job::output_path("--html", options.html, job::FileKind::report),
       job::output_path("--cluster-out", options.cluster_out, job::FileKind::description),
       job::output_path("--network-out", options.network_out, job::FileKind::description),
       {"FILE", options.file, job::PathUse::input},
       {"--cluster", options.cluster, job::PathUse::name_or_input},
       {"--model", options.model, job::PathUse::name_or_input}},
      job::replaces(options.force));
  // How many curves there will be is not known yet.
  std::error_code error;
  for (std::size_t i = 1; !options.plot.empty() && i < most_rows &&
                          std::filesystem::exists(plot_path(options.plot, i), error);
       ++i)
    job::check_replaced("--plot", plot_path(options.plot, i), job::FileKind::picture,
                        job::replaces(options.force));
  std::optional<models::Network> network;
  if (!options.model.empty())
    network = job::parsing_option("--model", [&] { return job::load_layers(options.model); });
  if (network && !options.network_out.empty())
    throw InputError({"--network-out"}, "--model says what the network is",
                     "leave one of the two out");
  std::optional<calibration::ImportFormat> format;
  if (options.format != "auto")
    format = job::parsing_option(
        "--format", [&] { return calibration::import_format_from_name(options.format); });
  Progress progress(fmt::format("reading {}", options.file));
  // A pipe without an end is refused once its beginning shows that no tool wrote it.
  const std::string text = job::read_trace_file(options.file, [&](std::string_view head) {
    if (!format) (void)calibration::guessed_format(head, options.file);
  });
  if (!format) format = calibration::guessed_format(text, options.file);
  if (!options.network_out.empty() && *format != calibration::ImportFormat::kineto)
    throw InputError({"--network-out"}, options.file + " is no trace of torch.profiler",
                     "leave it out");
  // Without --model, a trace that has the shapes of operators says itself what its network is.
  std::optional<calibration::TracedNetwork> traced;
  if (!network && *format == calibration::ImportFormat::kineto &&
      (!options.network_out.empty() || calibration::has_shapes(text))) {
    traced = calibration::traced_network(text, options.file, network_name(options));
    network = traced->network;
  }
  const models::Network* layers = network ? &*network : nullptr;
  calibration::ImportContext context = context_of(options, layers);
  if (traced && options.batch.empty()) context.batch_per_rank = traced->batch;
  std::optional<models::Collective> collective;
  if (!options.collective.empty())
    collective = job::parsing_option(
        "--collective", [&] { return models::collective_from_name(options.collective); });
  if (collective && *format != calibration::ImportFormat::nccl_tests)
    throw InputError({"--collective"}, options.file + " says itself what it is", "leave it out");
  progress.show(fmt::format("importing {}", options.file), 0);
  calibration::Imported imported =
      calibration::import_text(*format, text, options.file, layers, collective);
  if (traced)
    imported.remarks.insert(imported.remarks.begin(), traced->remarks.begin(),
                            traced->remarks.end());
  if (imported.training && imported.throughputs.empty())
    throw InputError({options.file},
                     fmt::format("its iterations are told by {}, and by no samples",
                                 imported.training->written_as),
                     "paceline check takes it");
  if (imported.machine) {
    progress.end();
    describe(options, context, imported);
    return;
  }
  if (!options.cluster_out.empty())
    throw InputError({"--cluster-out"}, context.file + " tells of no machine", "leave it out");
  // Without a profile to write, a throughput needs no ranks.
  calibration::Imported kept = imported;
  if (options.out.empty() && options.html.empty()) kept.throughputs.clear();
  progress.show(fmt::format("fitting what {} has measured", options.file), 0);
  const calibration::ImportedProfile result = calibration::profile_of(kept, context);
  if (!options.plot.empty() && result.curves.empty())
    throw InputError({"--plot"}, "there is no curve in " + in_quotes(context.file), "leave it out");
  for (const auto& [option, path] : {std::pair("--out", options.out), {"--html", options.html}})
    if (!path.empty() && result.curves.empty() && result.profile.layers.empty() &&
        result.profile.throughputs.empty())
      throw InputError({option}, "there is nothing in this file that a profile holds",
                       "leave it out");
  const std::string profile = models::to_json(result.profile);
  // What is written can be read: times beyond all limits, or two tables of one thing, cannot.
  if (!options.out.empty() || !options.html.empty())
    (void)models::parse_profile(profile, context.file);
  progress.end();

  print_lines("{}: {}{}\n\n", context.file, imported.tool,
              imported.version.empty() ? "" : " " + imported.version);
  for (const calibration::FittedCurve& fitted : result.curves) print_curve(fitted);
  if (!imported.layers.empty() && layers != nullptr) print_layers(imported, *layers);
  if (!imported.tensors.empty()) print_tensors(imported);
  print_throughputs(imported);
  for (const std::string& remark : imported.remarks) print_lines("note: {}\n", remark);
  if (!options.plot.empty()) write_plots(options.plot, result, imported, context.file);
  if (!options.html.empty())
    write_report_of(result, imported, profile, context.file, options, words);
  if (!options.network_out.empty()) {
    job::write_output_file(options.network_out, models::to_yaml(*network));
    notice("network {} written to {}\n", network->name(), options.network_out);
  }
  if (options.out.empty()) return;
  job::write_output_file(options.out, profile);
  notice("profile {} written to {}\n", result.profile.name, options.out);
}

}  // namespace

void add_calibrate_import(Command& calibrate) {
  Command& command =
      calibrate.add_command("import",
                            "The output of another tool as a profile (nccl-tests, OSU, IMB, "
                            "torch.profiler, DeepSpeed, Horovod, MLPerf) or as a "
                            "cluster (nvidia-smi topo -m, topologies and logs of NCCL)");
  const auto options = std::make_shared<Options>();
  command.add_option("file", options->file, "What the tool wrote").value("FILE");
  command
      .add_option("--format", options->format,
                  fmt::format("{}; by default what the file looks like",
                              fmt::join(calibration::import_format_names(), ", ")))
      .value("auto|NAME");
  command
      .add_option("--model", options->model,
                  "Network of a trace of torch.profiler or of a run: a name or a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--ranks", options->ranks,
                  "Ranks of the collective or the run, where the file does not say")
      .value("N");
  command
      .add_option("--batch", options->batch,
                  "Samples of each rank in the trace, where its shapes do not say (64)")
      .value("N");
  command.add_option("--precision", options->precision, "Precision of the traced computation")
      .value("fp32|mixed (mixed)");
  command
      .add_option("--wire", options->wire,
                  "Number type of the collective's elements, where the file does not say")
      .value("fp32|fp16|bf16");
  command
      .add_option("--collective", options->collective,
                  "Collective that a table is of, where it does not say, of " +
                      models::names_of_collectives())
      .value("NAME");
  command
      .add_option("--library", options->library,
                  "Name of the library that was measured, instead of nccl or mpi")
      .value("NAME");
  command.add_flag("--intra", options->intra,
                   "The ranks were on one node, where the file does not say: as --nodes 1");
  add_force_option(command, options->force);
  command
      .add_option("--cluster", options->cluster,
                  "Cluster that was measured: a name of the catalogue or a YAML file")
      .value("NAME|FILE");
  command.add_option("--name", options->name, "Name of the profile; by default the file's")
      .value("NAME");
  command.add_option("--out", options->out, "Profile to write (JSON)").value("FILE");
  command
      .add_option("--plot", options->plot,
                  "Plot of data and fit to write (SVG); several curves are numbered")
      .value("FILE");
  add_html_option(command, options->html);
  command
      .add_option("--cluster-out", options->cluster_out,
                  "Cluster description to write (YAML), of a file that tells of a machine")
      .value("FILE");
  command
      .add_option("--nodes", options->nodes,
                  "Nodes of the ranks or of the cluster, where the file does not say")
      .value("N");
  command
      .add_option("--device", options->device,
                  "Device of the catalogue, where the file does not name one")
      .value("NAME");
  command
      .add_option("--nic", options->nic,
                  "Link of the catalogue that a NIC is, where it is not told")
      .value("NAME");
  command
      .add_option("--intra-link", options->intra_link,
                  "Link of the catalogue between the GPUs of a node, where it is not told")
      .value("NAME");
  command
      .add_option("--network-out", options->network_out,
                  "Network to write (YAML), of a trace of torch.profiler with record_shapes")
      .value("FILE");
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
