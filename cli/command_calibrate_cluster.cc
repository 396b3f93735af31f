// paceline calibrate: measure the cluster that the command is started on, by mpirun or srun.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibration/cluster_profile.h"
#include "calibration/fit/plot.h"
#include "calibration/import/table_text.h"
#include "calibration/measure/kernel_rates.h"
#include "calibration/measure/layer_times.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/ranks.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "runtime/channel/rank_threads.h"
#include "runtime/transport/mpi_transport.h"

namespace paceline::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_gaps = 20;
// One message that is as small as may be, and two that still go at once but wait for a slow link.
constexpr std::array<std::int64_t, 3> gap_sizes{1, 256, 1024};
constexpr int fairness_repetitions = 7;
constexpr int stream_repetitions = 7;
constexpr int both_ways_repetitions = 5;
// Of --time, for the uplink.
constexpr double uplink_share = 0.1;
// On top of --time, for layers alone, and again for layers beside traffic.
constexpr double layer_share = 0.1;
constexpr Seconds least_layer_time{2};
constexpr std::size_t kernel_bytes = std::size_t{16} << 20;
constexpr int kernel_repetitions = 15;

struct Options {
  std::string out;
  std::string name = "calibrated";
  std::string cluster;
  std::string time = "30 s";
  std::string largest;
  std::string largest_all_reduce = "16 MiB";
  std::string model;
  std::string batch = "16";
  std::string precision = "fp32";
  std::string threads = "1";
  std::string ranks;
  std::string patience = job::default_patience;
  std::string plot;
  bool json = false;
};

// As every rank reads it, before any of them measures.
struct Request {
  Seconds time;
  std::int64_t largest = 0;  // bytes; 0: what the transport likes
  std::int64_t largest_all_reduce = 0;
  calibration::ProfileNames names;
  int nodes_per_leaf = 0;  // as of calibration::NodeMap
  // Of a leaf's uplink; 0: there is none, or nodes have several NICs, of which the first ranks use
  // one or all.
  double stated_oversubscription = 0;
  std::optional<models::Network> network;
  int batch = 1;
  models::Precision precision = models::Precision::fp32;
  int threads = 1;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::int64_t message_size(const char* option, const std::string& text) {
  const Bytes size = job::parsing_option(option, [&] { return parse_bytes(text); });
  if (size < Bytes{1024} || size > Bytes{1 << 30})
    throw InputError({option}, text + " is no size of a message", "give 1 KiB to 1 GiB");
  return static_cast<std::int64_t>(size.value());
}

// `which` of several of a kind.
std::string plot_path(const std::string& prefix, models::CurveKind kind, bool between_nodes,
                      const std::string& which = "") {
  return fmt::format("{}-{}-{}{}.svg", prefix, name(kind),
                     between_nodes ? "between-nodes" : "within-node", which);
}

Request load(const Options& options) {
  if (options.out.empty())
    throw InputError("--out is missing", "say where the profile goes, as in --out profile.json");
  job::check_paths(
      {{"--out", options.out, job::PathUse::output},
       {"--plot",
        options.plot.empty() ? "" : plot_path(options.plot, models::CurveKind::exchange, true),
        job::PathUse::output},
       {"--cluster", options.cluster, job::PathUse::name_or_input},
       {"--model", options.model, job::PathUse::name_or_input}});
  Request request;
  request.time = job::parsing_option("--time", [&] { return parse_seconds(options.time); });
  if (request.time < Seconds{1})
    throw InputError({"--time"}, fmt::format("{} is too short", options.time), "give at least 1 s");
  if (!options.largest.empty()) request.largest = message_size("--largest", options.largest);
  request.largest_all_reduce = message_size("--largest-all-reduce", options.largest_all_reduce);
  const std::string name = calibration::printable(options.name);
  request.names = {.name = name, .cluster = name, .device = "cpu", .origin = {}};
  if (!options.cluster.empty()) {
    const models::Cluster cluster = job::load_cluster(options.cluster);
    request.names.cluster = cluster.name;
    request.names.device = cluster.device.name;
    if (cluster.fabric.kind == models::FabricKind::fat_tree && !cluster.fabric.levels.empty()) {
      const models::FatTreeLevel& leaf = cluster.fabric.levels.front();
      request.nodes_per_leaf = leaf.members;
      if (cluster.nics_per_node == 1) request.stated_oversubscription = leaf.oversubscription;
    }
  }
  if (!options.model.empty()) request.network = job::load_layers(options.model);
  request.batch = static_cast<int>(
      job::parsing_option("--batch", [&] { return parse_count(options.batch, 1, 1 << 20); }));
  request.precision = job::parsing_option(
      "--precision", [&] { return models::precision_from_name(options.precision); });
  request.threads = static_cast<int>(
      job::parsing_option("--threads", [&] { return parse_count(options.threads, 1, 1024); }));
  return request;
}

// Powers of four, and the largest.
std::vector<std::int64_t> sizes_up_to(std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 4; size < largest; size *= 4) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

// Powers of four, and of two from where Open MPI may change to another algorithm.
std::vector<std::int64_t> all_reduce_sizes_up_to(std::int64_t largest) {
  constexpr std::int64_t dense_from = 4096;
  std::vector<std::int64_t> sizes = sizes_up_to(std::min(largest, dense_from));
  for (std::int64_t size = 2 * dense_from; size < 2 * largest; size *= 2)
    sizes.push_back(std::min(size, largest));
  return sizes;
}

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%MZ}", fmt::gmtime(std::time(nullptr)));
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
  print("{} at batch {}: forward {}, backward {} in {} layers\n", layers.front().network,
        layers.front().batch_per_rank, to_text(forward), to_text(backward), layers.size());
  if (has_beside)
    print("beside traffic: forward {}, backward {}, {:.2f} times as long\n",
          to_text(forward_beside), to_text(backward_beside),
          (forward_beside + backward_beside) / (forward + backward));
}

void print_result(const calibration::ClusterProfile& made, double nic_sharing,
                  double stated_oversubscription, const std::string& out) {
  Table rows({{"curve", Align::left},
              {"ranks"},
              {"from", Align::right},
              {"alpha (90 %)"},
              {"bandwidth (90 %)"},
              {"residual"}});
  for (const models::CalibratedCurve& curve : made.profile.curves) {
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
  print("calibrated: {}\n\n{}", made.profile.origin, rows.text());
  if (made.profile.transport) {
    const models::CalibratedTransport& t = *made.profile.transport;
    print(
        "\n{}: messages of {} to {}; {} from one small message of a rank to its next; "
        "two receivers share its link {} (fairness {:.2f})\n",
        t.name, to_text_binary(t.smallest_message), to_text_binary(t.largest_message),
        to_text(t.message_gap.value), t.fairness > 0.5 ? "evenly" : "one after the other",
        t.fairness);
    if (t.message_header)
      print("a message takes {:.0f} bytes of the link besides its own ({:.0f} - {:.0f})\n",
            t.message_header->value.value(), t.message_header->low.value(),
            t.message_header->high.value());
  }
  const auto print_bandwidth = [](const char* where, const auto& figure) {
    if (figure)
      print("messages in a row {}: {} ({} - {})\n", where, to_text_bits(figure->value),
            to_text_bits(figure->low), to_text_bits(figure->high));
  };
  print_bandwidth("between nodes", made.profile.nic_bandwidth);
  print_bandwidth("within a node", made.profile.intra_bandwidth);
  const auto print_both_ways = [](const char* where, const auto& figure) {
    if (figure)
      print(
          "both ways at once {}: {:.2f} times as long as one way ({:.2f} - {:.2f}; 1 is full "
          "duplex, 2 half)\n",
          where, figure->value, figure->low, figure->high);
  };
  print_both_ways("between nodes", made.profile.nic_both_ways);
  print_both_ways("within a node", made.profile.intra_both_ways);
  if (const auto& uplink = made.profile.uplink_oversubscription)
    print("uplink of a leaf: oversubscribed {:.2f}:1 ({:.2f} - {:.2f}), stated {:.2f}:1\n",
          uplink->value, uplink->low, uplink->high, stated_oversubscription);
  if (nic_sharing > 0)
    print("a NIC that all ranks of a node share: {:.2f} times as long for each byte\n",
          nic_sharing);
  for (const models::CalibratedRate& rate : made.profile.rates)
    print("{} {}: {} ({} - {})\n", name(rate.kind), name(rate.type), to_text(rate.bytes.value),
          to_text(rate.bytes.low), to_text(rate.bytes.high));
  print_layers(made.profile.layers);
  for (const std::string& complaint : made.complaints) print("warning: {}\n", complaint);
  print("\nprofile written to {}\n", out);
}

void write_plots(const Options& options, const calibration::ClusterProfile& made,
                 const std::vector<calibration::MessageTimes>& messages, int ranks) {
  std::size_t fit = 0;
  for (const calibration::MessageTimes& times : messages) {
    if (times.samples.empty()) continue;
    const std::string& source = made.profile.curves[fit].source;
    const std::size_t colon = source.find(": ");
    const std::string of_fewer = times.kind == models::CurveKind::all_reduce && times.ranks < ranks
                                     ? fmt::format("-{}-ranks", times.ranks)
                                     : "";
    const std::string path = plot_path(options.plot, times.kind, times.between_nodes, of_fewer);
    job::write_output_file(
        path, calibration::fit_svg(
                  times.samples, made.fits[fit],
                  {.title = source.substr(0, colon),
                   .origin = colon == std::string::npos ? "" : source.substr(colon + 2)}));
    ++fit;
  }
}

// If the library's all-reduce was not measured as far as it was asked for.
std::optional<std::string> unreached(const std::vector<calibration::MessageTimes>& messages,
                                     std::int64_t asked) {
  std::string reached;
  for (const calibration::MessageTimes& times : messages) {
    if (times.kind != models::CurveKind::all_reduce || times.samples.empty()) continue;
    const Bytes last = times.samples.back().bytes;
    if (last >= Bytes{static_cast<double>(asked)}) continue;
    reached += fmt::format("{}{} on {} ranks", reached.empty() ? "" : ", ", to_text_binary(last),
                           times.ranks);
  }
  if (reached.empty()) return std::nullopt;
  return fmt::format(
      "all-reduce: --time was enough for {}, not for {}; larger buckets are extrapolated", reached,
      to_text_binary(Bytes{static_cast<double>(asked)}));
}

// One rank, from its transport on. Rank 0 fits and reports.
void run_rank(const Options& options, const Request& request, runtime::Transport& transport) {
  Progress progress(OffTerminal::lines);
  calibration::NodeMap nodes = calibration::find_nodes(transport, host_name());
  nodes.nodes_per_leaf = request.nodes_per_leaf;
  calibration::ClusterMeasurements measured;
  measured.transport = transport.name();
  measured.message_sizes = transport.message_sizes();
  measured.stated_oversubscription = request.stated_oversubscription;
  const std::int64_t largest =
      request.largest > 0 ? request.largest : measured.message_sizes.largest_bytes;
  double sharing = 0;
  if (transport.ranks() > 1) {
    const auto start = std::chrono::steady_clock::now();
    if (transport.rank() == 0) progress.show("messages in a row", 0);
    measured.streams = calibration::measure_streams(
        transport, nodes, std::max<std::int64_t>(1, largest / 4), stream_repetitions);
    measured.both_ways =
        calibration::measure_both_ways(transport, nodes, largest, both_ways_repetitions);
    if (request.stated_oversubscription > 0) {
      if (transport.rank() == 0) progress.show("uplinks", 0);
      measured.uplink =
          calibration::measure_uplink(transport, nodes, std::max<std::int64_t>(1, largest / 4),
                                      stream_repetitions, request.time * uplink_share);
    }
    for (const std::int64_t bytes : gap_sizes) {
      measured.message_gaps.push_back(
          calibration::measure_message_gap(transport, nodes, bytes, most_gaps));
    }
    measured.fairness =
        calibration::measure_fairness(transport, nodes, largest, fairness_repetitions);
    sharing = calibration::measure_nic_sharing(transport, nodes, largest);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    measured.messages = calibration::measure_messages(
        transport, nodes,
        {.sizes = sizes_up_to(largest),
         .time = std::max(request.time * 0.25, request.time * 0.9 - Seconds{passed.count()}),
         .all_reduce_sizes = all_reduce_sizes_up_to(request.largest_all_reduce),
         .progress = [&](const std::string& what, double share) { progress.show(what, share); }});
  }
  calibration::ProfileNames names = request.names;
  names.origin =
      fmt::format("paceline calibrate, {} ranks on {} nodes, {}, {}, {}", transport.ranks(),
                  nodes.nodes(), transport.name(), host_name(), now_text());
  if (request.network) {
    if (transport.rank() == 0) progress.show("layers", 0);
    measured.layers = calibration::measure_layers(
        transport,
        {.network = *request.network,
         .batch = request.batch,
         .precision = request.precision,
         .threads = request.threads,
         .time = std::max(least_layer_time, request.time * layer_share),
         .progress = [&](const std::string& what, double share) { progress.show(what, share); }},
        names.origin);
  }
  if (transport.rank() != 0) return;
  progress.show("kernels", 0);
  measured.rates =
      calibration::measure_kernel_rates(kernel_bytes, kernel_repetitions, names.origin);
  progress.end();
  calibration::ClusterProfile made = make_profile(measured, names);
  if (const auto complaint = unreached(measured.messages, request.largest_all_reduce))
    made.complaints.push_back(*complaint);
  const std::string text = to_json(made.profile);
  job::write_output_file(options.out, text);
  if (!options.plot.empty()) write_plots(options, made, measured.messages, transport.ranks());
  if (options.json) {
    print("{}", text);
    for (const std::string& complaint : made.complaints)
      notice("paceline: warning: {}\n", complaint);
    return;
  }
  print_result(made, sharing, request.stated_oversubscription, options.out);
}

void run(const Options& options) {
  const auto launched = job::rank_of_job();
  const Request request = load(options);
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
    return run_rank(options, request, *transport);
  }
  const int ranks =
      job::optional_count("--ranks", options.ranks, job::most_thread_ranks).value_or(1);
  check_plot(ranks);
  runtime::run_as_threads(ranks, 1, patience, [&](const runtime::Endpoint& endpoint) {
    run_rank(options, request, endpoint.transport);
  });
}

}  // namespace

void add_calibrate_cluster(Command& calibrate) {
  const auto options = std::make_shared<Options>();
  Command& command = calibrate;
  command.add_option("--out", options->out, "Write the profile here").value("FILE");
  command.add_option("--name", options->name, "Name of the profile").value("NAME (calibrated)");
  command
      .add_option("--cluster", options->cluster,
                  "The cluster that this is, as predict will name it: a name of the catalogue or "
                  "a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--time", options->time,
                  "Time for all measurements of messages; every size is tried at least 3 times, "
                  "however slow the links are. Layers take a tenth of it on top, alone and beside "
                  "traffic, and at least 4 passes")
      .value("TIME (30 s)");
  command
      .add_option("--largest", options->largest,
                  "Largest message; by default the largest that the executor sends")
      .value("SIZE");
  command
      .add_option("--largest-all-reduce", options->largest_all_reduce,
                  "Largest bucket of the library's own all-reduce, as far as --time allows")
      .value("SIZE (16 MiB)");
  const Option& model = command
                            .add_option("--model", options->model,
                                        "Also time forward and backward of each layer of this "
                                        "network, on all ranks, alone and beside traffic")
                            .value("NAME|FILE");
  command.add_option("--batch", options->batch, "Samples of a rank, of --model")
      .value("N (16)")
      .needs(model);
  command
      .add_option("--precision", options->precision, "Precision of --model: fp32, or mixed (BF16)")
      .value("fp32|mixed (fp32)")
      .needs(model);
  command.add_option("--threads", options->threads, "Threads that compute, per rank, of --model")
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
  command.add_flag("--json", options->json, "Print the profile and nothing else");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
