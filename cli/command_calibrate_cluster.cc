// paceline calibrate: measure the cluster that the command is started on, by mpirun or srun.
#include <fmt/core.h>

#include <filesystem>
#include <optional>

#include "calibration/cluster_profile.h"
#include "calibration/fit/fit_json.h"
#include "calibration/fit/plot.h"
#include "cli/command.h"
#include "cli/device_calibration_text.h"
#include "cli/job/cluster_calibration.h"
#include "cli/job/device_calibration.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/ranks.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "runtime/channel/rank_threads.h"
#include "runtime/transport/mpi_transport.h"

namespace paceline::cli {
namespace {

struct Options {
  job::CalibrationOptions calibration;
  std::string out;
  std::string device;
  std::string layers;
  std::string ranks;
  std::string patience = job::default_patience;
  std::string plot;
  std::string html;
  bool json = false;
  bool force = false;
};

// The file of one plot. `which` tells curves of one kind apart.
std::string plot_path(const std::string& prefix, models::CurveKind kind, bool between_nodes,
                      const std::string& which = "") {
  return fmt::format("{}-{}-{}{}.svg", prefix, name(kind),
                     between_nodes ? "between-nodes" : "within-node", which);
}

void check_paths(const Options& options) {
  if (options.out.empty())
    throw InputError("--out is missing", "say where the profile goes, as in --out profile.json");
  job::check_paths(
      {job::output_path("--out", options.out, job::FileKind::profile),
       job::output_path("--html", options.html, job::FileKind::report),
       job::output_path(
           "--plot",
           options.plot.empty() ? "" : plot_path(options.plot, models::CurveKind::exchange, true),
           job::FileKind::picture),
       {"--cluster", options.calibration.cluster, job::PathUse::name_or_input},
       {"--model", options.calibration.model, job::PathUse::name_or_input}},
      job::replaces(options.force));
  if (options.plot.empty()) return;
  // Which curves there will be is not known yet. All have names that begin so.
  const std::filesystem::path prefix(options.plot + "-");
  const std::filesystem::path folder = prefix.has_parent_path() ? prefix.parent_path() : ".";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix.filename().string()) && name.ends_with(".svg"))
      job::check_replaced("--plot", entry.path().string(), job::FileKind::picture,
                          job::replaces(options.force));
  }
}

job::CalibrationRequest load(const Options& options) {
  check_paths(options);
  return load_calibration(options.calibration);
}

void print_layers(const std::vector<models::CalibratedLayer>& layers) {
  if (layers.empty()) return;
  Seconds forward;
  Seconds backward;
  Seconds forward_beside;
  Seconds backward_beside;
  bool has_beside = false;
  for (const models::CalibratedLayer& layer : layers) {
    forward += layer.forward.value;
    backward += layer.backward.value;
    if (!layer.forward_beside_traffic || !layer.backward_beside_traffic) continue;
    has_beside = true;
    forward_beside += layer.forward_beside_traffic->value;
    backward_beside += layer.backward_beside_traffic->value;
  }
  print_lines("layers of {} at batch {}: forward {}, backward {} in {} layers\n",
              layers.front().network, layers.front().batch_per_rank, to_text(forward),
              to_text(backward), layers.size());
  if (has_beside)
    print_lines("beside traffic: forward {}, backward {}, {:.2f} times as long\n",
                to_text(forward_beside), to_text(backward_beside),
                (forward_beside + backward_beside) / (forward + backward));
}

std::string curves_text(const std::vector<models::CalibratedCurve>& curves) {
  Table rows({{"curve", Align::left},
              {"ranks"},
              {"from", Align::right},
              {"alpha (90 %)"},
              {"bandwidth (90 %)"},
              {"residual"}});
  for (const models::CalibratedCurve& curve : curves) {
    for (const models::CurvePiece& piece : curve.pieces) {
      const auto bandwidth = [](SecondsPerByte beta) {
        return beta > SecondsPerByte{0} ? to_text_bits(1.0 / beta) : std::string("unbounded");
      };
      rows.add({fmt::format("{} {}", name(curve.kind),
                            curve.between_nodes ? "between nodes" : "within a node"),
                fmt::format("{}", curve.ranks), to_text_binary(piece.from),
                fmt::format("{} ({} - {})", to_text(piece.alpha.value), to_text(piece.alpha.low),
                            to_text(piece.alpha.high)),
                fmt::format("{} ({} - {})", bandwidth(piece.beta.value), bandwidth(piece.beta.high),
                            bandwidth(piece.beta.low)),
                fmt::format("{:.1f} %", 100 * curve.residual)});
    }
  }
  return rows.text();
}

// What was fitted to measurements: curves and links.
void print_calibrated(const models::Profile& profile, double stated_oversubscription) {
  print_lines("\ncalibrated, with 90 % intervals:\n{}", curves_text(profile.curves));
  if (profile.transport) {
    const models::CalibratedTransport& t = *profile.transport;
    print_lines(
        "\n{}: messages of {} to {}; {}two receivers share a rank's link {} (fairness {:.2f})\n",
        t.name, to_text_binary(t.smallest_message), to_text_binary(t.largest_message),
        t.message_gap
            ? to_text(t.message_gap->value) + " from one small message of a rank to its next; "
            : "",
        t.fairness > 0.5 ? "evenly" : "one after the other", t.fairness);
    if (t.message_header)
      print_lines("a message takes {:.0f} bytes of the link besides its own ({:.0f} - {:.0f})\n",
                  t.message_header->value.value(), t.message_header->low.value(),
                  t.message_header->high.value());
  }
  const auto print_bandwidth = [](const char* where, const auto& figure) {
    if (figure)
      print_lines("messages in a row {}: {} ({} - {})\n", where, to_text_bits(figure->value),
                  to_text_bits(figure->low), to_text_bits(figure->high));
  };
  print_bandwidth("between nodes", profile.nic_bandwidth);
  print_bandwidth("within a node", profile.intra_bandwidth);
  const auto print_both_ways = [](const char* where, const auto& figure) {
    if (figure)
      print_lines(
          "both ways at once {}: {:.2f} times as long as one way ({:.2f} - {:.2f}; 1 is full "
          "duplex, 2 half)\n",
          where, figure->value, figure->low, figure->high);
  };
  print_both_ways("between nodes", profile.nic_both_ways);
  print_both_ways("within a node", profile.intra_both_ways);
  if (const auto& uplink = profile.uplink_oversubscription)
    print_lines("uplink of a leaf: oversubscribed {:.2f}:1 ({:.2f} - {:.2f}), stated {:.2f}:1\n",
                uplink->value, uplink->low, uplink->high, stated_oversubscription);
}

// What is printed as it was measured: kernels, layers, and how ranks share a NIC.
void print_measured(const models::Profile& profile, double nic_sharing) {
  print_lines("\nmeasured, with 90 % intervals:\n");
  if (nic_sharing > 0)
    print_lines("a NIC that all ranks of a node share: {:.2f} times as long for each byte\n",
                nic_sharing);
  for (const models::CalibratedRate& rate : profile.rates)
    print_lines("{} {}: {} ({} - {})\n", name(rate.kind), name(rate.type),
                to_text(rate.bytes.value), to_text(rate.bytes.low), to_text(rate.bytes.high));
  print_layers(profile.layers);
}

void print_result(const calibration::ClusterProfile& made, double nic_sharing,
                  double stated_oversubscription, const std::string& out) {
  const models::Profile& profile = made.profile;
  print_lines("{}\n", profile.origin);
  if (!profile.curves.empty() || profile.transport)
    print_calibrated(profile, stated_oversubscription);
  if (nic_sharing > 0 || !profile.rates.empty() || !profile.layers.empty())
    print_measured(profile, nic_sharing);
  if (!made.complaints.empty()) print_lines("\n");
  for (const std::string& complaint : made.complaints) print_lines("warning: {}\n", complaint);
  print_lines("\nprofile written to {}\n", out);
}

// What was measured of one pattern of messages, and the fit to it.
struct FittedPattern {
  const calibration::MessageTimes& times;
  const calibration::Fit& fit;
  std::string title;
  std::string origin;
};

std::vector<FittedPattern> fitted_patterns(const calibration::ClusterProfile& made,
                                           const std::vector<calibration::MessageTimes>& messages) {
  std::vector<FittedPattern> patterns;
  for (const calibration::MessageTimes& times : messages) {
    if (times.samples.empty()) continue;
    const auto& [fit, source] = made.fits[patterns.size()];
    const std::size_t colon = source.find(": ");
    patterns.push_back({times, fit, source.substr(0, colon),
                        colon == std::string::npos ? "" : source.substr(colon + 2)});
  }
  return patterns;
}

void write_plots(const Options& options, const std::vector<FittedPattern>& patterns, int ranks) {
  for (const FittedPattern& pattern : patterns) {
    const calibration::MessageTimes& times = pattern.times;
    const std::string of_fewer = times.kind == models::CurveKind::all_reduce && times.ranks < ranks
                                     ? fmt::format("-{}-ranks", times.ranks)
                                     : "";
    job::write_output_file(
        plot_path(options.plot, times.kind, times.between_nodes, of_fewer),
        calibration::fit_svg(times.samples, pattern.fit,
                             {.title = pattern.title, .origin = pattern.origin}));
  }
}

// A report of the profile, with the measurements that its curves are fitted to.
void write_report_of(const models::Profile& profile, const std::vector<FittedPattern>& patterns,
                     const std::vector<std::string>& complaints, const Options& options,
                     const Words& words) {
  if (options.html.empty()) return;
  calibration::Fits fits{profile.name, profile.origin, {}, complaints};
  for (const FittedPattern& pattern : patterns)
    fits.curves.push_back({pattern.times.samples, pattern.fit, pattern.title, pattern.origin});
  write_report(
      options.html, words, fmt::format("profile {}", profile.name),
      {{"result", calibration::fits_document().text(fits)}, {"profile", to_json(profile)}});
}

// Runs one rank of the job. Rank 0 writes and prints the profile.
void run_rank(const Options& options, const job::CalibrationRequest& request,
              runtime::Transport& transport, const Words& words) {
  Progress progress(OffTerminal::lines);
  const std::optional<job::ClusterCalibration> result =
      calibrate(request, transport,
                [&](const std::string& what, double share) { progress.show(what, share); });
  progress.end();
  if (!result) return;
  const std::string text = to_json(result->made.profile);
  job::write_output_file(options.out, text);
  const std::vector<FittedPattern> patterns = fitted_patterns(result->made, result->messages);
  if (!options.plot.empty()) write_plots(options, patterns, transport.ranks());
  write_report_of(result->made.profile, patterns, result->made.complaints, options, words);
  if (options.json) {
    print("{}", text);
    warn(result->made.complaints);
    return;
  }
  print_result(result->made, result->nic_sharing, request.stated_oversubscription, options.out);
}

// Measures the GPUs of this machine, as one process.
void run_device(const Options& options, const Words& words) {
  check_paths(options);
  struct Other {
    const char* option;
    bool is_given;
  };
  for (const Other& other :
       {Other{"--ranks", !options.ranks.empty()}, Other{"--plot", !options.plot.empty()},
        Other{"--threads", options.calibration.threads != job::CalibrationOptions().threads}})
    if (other.is_given)
      throw InputError({other.option}, "it says nothing of a GPU", "leave it out");
  if (job::rank_of_job())
    throw InputError({"--device"}, "one process measures all GPUs of its machine",
                     "start it without mpirun or srun");
  const job::DeviceCalibrationRequest request =
      job::load_device_calibration(options.calibration, options.device, options.layers);
  Progress progress(OffTerminal::lines);
  const job::DeviceCalibration result = job::calibrate_device(
      request, [&](const std::string& what, double share) { progress.show(what, share); });
  progress.end();
  const std::string text = to_json(result.made.profile);
  job::write_output_file(options.out, text);
  write_report_of(result.made.profile, {}, result.made.complaints, options, words);
  if (options.json) {
    print("{}", text);
    warn(result.made.complaints);
    return;
  }
  print_lines("{}", device_calibration_text(result));
  if (!result.made.complaints.empty()) print_lines("\n");
  for (const std::string& complaint : result.made.complaints)
    print_lines("warning: {}\n", complaint);
  print_lines("\nprofile written to {}\n", options.out);
}

void run(const Options& options, const Words& words) {
  if (job::named_device(options.device).is_cuda) return run_device(options, words);
  if (!options.layers.empty())
    throw InputError({"--layers"}, "layers are computed by the CPU", "add --device cuda");
  const auto launched = job::rank_of_job();
  const job::CalibrationRequest request = load(options);
  const Seconds patience = job::parse_patience(options.patience);
  const auto check_plot = [&options](int ranks) {
    if (ranks == 1 && !options.plot.empty())
      throw InputError({"--plot"}, "one rank has nothing to send, and no curve",
                       "leave it out, or start more ranks");
  };
  if (launched) {
    job::refuse_ranks_option(options.ranks);
    check_plot(launched->ranks);
    const auto transport = runtime::mpi_transport(1, patience);
    return run_rank(options, request, *transport, words);
  }
  const int ranks =
      job::optional_count("--ranks", options.ranks, job::most_thread_ranks).value_or(1);
  check_plot(ranks);
  runtime::run_as_threads(ranks, 1, patience, [&](const runtime::Endpoint& endpoint) {
    run_rank(options, request, endpoint.transport, words);
  });
}

}  // namespace

void add_calibrate_cluster(Command& calibrate) {
  const auto options = std::make_shared<Options>();
  Command& command = calibrate;
  command.add_option("--out", options->out, "Write the profile here").value("FILE");
  command.add_option("--name", options->calibration.name, "Name of the profile")
      .value("NAME (calibrated)");
  command
      .add_option("--cluster", options->calibration.cluster,
                  "The cluster that this is, as predict will name it: a name of the catalogue or "
                  "a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--device", options->device,
                  "What is measured: the CPUs that ranks run on and what travels between them, or "
                  "GPUs: number N alone, or the first one and NCCL between all")
      .value("cpu|cuda|cuda:N (cpu)");
  command
      .add_option(
          "--layers", options->layers,
          "What computes layers on GPUs, as train has it: cuDNN, own kernels, or cuDNN where "
          "it can be used")
      .value("auto|cudnn|own (auto)");
  command
      .add_option("--time", options->calibration.time,
                  "Time for all measurements of messages; every size is tried at least 3 times, "
                  "however slow the links are. Layers take a tenth of it on top, alone and beside "
                  "traffic, and at least 4 passes. On GPUs, time for everything")
      .value("TIME (30 s)");
  command
      .add_option("--largest", options->calibration.largest,
                  "Largest message; by default the largest that the executor sends. On GPUs, the "
                  "largest copy and kernel (64 MiB)")
      .value("SIZE");
  command
      .add_option("--largest-all-reduce", options->calibration.largest_all_reduce,
                  "Largest bucket of the library's own all-reduce, as far as --time allows")
      .value("SIZE (16 MiB)");
  const Option& model = command
                            .add_option("--model", options->calibration.model,
                                        "Also time forward and backward of each layer of this "
                                        "network, on all ranks, alone and beside traffic. On GPUs "
                                        "several with commas, and likewise of batches and "
                                        "precisions")
                            .value("NAME|FILE");
  command.add_option("--batch", options->calibration.batch, "Samples of a rank, of --model")
      .value("N (16)")
      .needs(model);
  command
      .add_option("--precision", options->calibration.precision,
                  "Precision of --model: fp32, or mixed (BF16)")
      .value("fp32|mixed (fp32)")
      .needs(model);
  command
      .add_option("--threads", options->calibration.threads,
                  "Threads that compute, per rank, of --model")
      .value("N (1)")
      .needs(model);
  command
      .add_option("--ranks", options->ranks,
                  "Number of ranks, as threads of this process; mpirun says it otherwise")
      .value("N (1)");
  add_patience_option(command, options->patience);
  command
      .add_option("--plot", options->plot,
                  "Draw data and fit of each curve: PREFIX-exchange-between-nodes.svg, ...")
      .value("PREFIX");
  add_html_option(command, options->html);
  command.add_flag("--json", options->json, "Print the profile and nothing else");
  add_force_option(command, options->force);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
