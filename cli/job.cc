// Tests: tests/cli (end to end).
#include "cli/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "calibration/shipped_profiles.h"
#include "cli/files.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"

namespace paceline::cli {
namespace {

// All means all that run on the cluster.
std::vector<const models::Strategy*> load_strategies(const std::string& option,
                                                     const models::Cluster& cluster,
                                                     const models::Profile* profile) {
  const bool has_curve =
      profile != nullptr &&
      std::any_of(profile->curves.begin(), profile->curves.end(),
                  [](const auto& c) { return c.kind == models::CurveKind::all_reduce; });
  std::vector<const models::Strategy*> chosen;
  if (option.empty() || option == "all") {
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      const bool runs = strategy.library() == models::Library::nccl
                            ? simulator::runs_nccl(cluster.device.name)
                            : !strategy.library() || has_curve;
      if (runs) chosen.push_back(&strategy);
    }
    return chosen;
  }
  for (const std::string& name : comma_list(option)) {
    chosen.push_back(parsing_option("--strategy", [&] { return &models::strategy(name); }));
  }
  return chosen;
}

// Slots between commas or blanks; what is behind a # on its line is left out.
std::vector<int> parse_slots(const std::string& text, int most) {
  std::vector<int> slots;
  std::string number;
  bool in_comment = false;
  const auto end_number = [&] {
    if (number.empty()) return;
    slots.push_back(static_cast<int>(parse_count(number, 0, most)));
    number.clear();
  };
  for (const char c : text) {
    in_comment = c != '\n' && (in_comment || c == '#');
    if (in_comment || c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_number();
    } else {
      number += c;
    }
  }
  end_number();
  if (slots.empty())
    throw InputError("a placement of no rank", "list the slot of each rank, as in 0,4,1,5");
  return slots;
}

void place_ranks(models::Cluster& cluster, const std::string& text) {
  const bool is_file = names_a_file(text) || text.ends_with(".txt");
  const bool is_list = !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
  const auto place = [&] {
    cluster.slots.clear();
    if (!is_file && !is_list) {
      cluster.placement = models::placement_from_name(text);
      return;
    }
    cluster.slots = parse_slots(is_file ? read_input_file(text) : text, cluster.ranks() - 1);
    models::check_slots(cluster.slots, cluster);
  };
  parsing_option(is_file ? text.c_str() : "--placement", place);
}

void required(const std::string& value, const char* option, const char* example) {
  if (value.empty())
    throw InputError(fmt::format("{} is missing", option),
                     fmt::format("give it, as in {} {}", option, example));
}

}  // namespace

std::optional<models::Profile> load_profile(const std::string& option,
                                            const models::Cluster& cluster) {
  if (option == "none") return std::nullopt;
  if (names_a_file(option)) return models::parse_profile(read_input_file(option), option);
  if (!option.empty())
    return parsing_option("--profile", [&] { return calibration::shipped_profile(option); });
  if (cluster.profile.empty()) return std::nullopt;
  return names_a_file(cluster.profile)
             ? models::parse_profile(read_input_file(cluster.profile), cluster.profile)
             : calibration::shipped_profile(cluster.profile);
}

std::optional<int> optional_count(const char* option, const std::string& text, int most) {
  if (text.empty()) return std::nullopt;
  return static_cast<int>(parsing_option(option, [&] { return parse_count(text, 1, most); }));
}

models::WireType default_wire(models::Precision precision) {
  return precision == models::Precision::mixed ? models::WireType::fp16 : models::WireType::fp32;
}

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (const std::string& part : parts) {
    if (part.empty())
      throw InputError(fmt::format("'{}' has an empty entry", text),
                       "separate names by single commas");
  }
  return parts;
}

models::Network load_layers(const std::string& name_or_file) {
  if (names_a_file(name_or_file))
    return models::parse_network_yaml(read_input_file(name_or_file), name_or_file);
  return parsing_option("--model", [&] { return models::zoo_network(name_or_file); });
}

LoadedNetwork load_network(const std::string& name_or_file) {
  const models::Network network = load_layers(name_or_file);
  return {models::work(network), network.stored_sample_bytes()};
}

models::Cluster load_cluster(const std::string& name_or_file) {
  if (name_or_file.ends_with(".xml")) {
    throw InputError({name_or_file}, "a platform says nothing of its devices",
                     "write a cluster file around it: cluster, device, host_link and fabric: "
                     "{platform: " +
                         name_or_file + "}");
  }
  if (names_a_file(name_or_file))
    return models::parse_cluster_yaml(read_input_file(name_or_file), name_or_file, read_input_file);
  return parsing_option("--cluster", [&] { return models::catalog_cluster(name_or_file); });
}

models::Cluster load_cluster(const std::string& name_or_file, const std::string& placement) {
  models::Cluster cluster = load_cluster(name_or_file);
  if (!placement.empty()) place_ranks(cluster, placement);
  return cluster;
}

void add_placement_option(Command& command, std::string& placement) {
  command
      .add_option("--placement", placement,
                  "Which slot (node x ranks per node + place) each rank sits in: node by node, one "
                  "rank a node and then the next, or the slots of ranks 0, 1, ... by commas or in "
                  "a file; by default as the cluster says")
      .value("node-major|round-robin|SLOT,...|FILE");
}

void add_profile_option(Command& command, std::string& profile) {
  command
      .add_option(
          "--profile", profile,
          "Calibrated profile: a shipped name, a JSON file, or none; by default the cluster's own")
      .value("NAME|FILE|none");
}

int parse_ranks(const std::string& text, const models::Cluster& cluster) {
  return parsing_option("--ranks", [&] {
    const std::int64_t ranks = parse_count(text, 1, models::max_ranks);
    models::check_ranks(cluster, ranks);
    return static_cast<int>(ranks);
  });
}

void add_job_options(Command& command, JobOptions& options) {
  command
      .add_option(
          "--model", options.model,
          "Network: a name of the zoo (paceline show catalog) or a YAML file; several by commas")
      .value("NAME|FILE");
  command
      .add_option("--cluster", options.cluster, "Cluster: a name of the catalogue or a YAML file")
      .value("NAME|FILE");
  add_placement_option(command, options.placement);
  command.add_option("--batch", options.batch, "Samples per rank and iteration").value("N (64)");
  command
      .add_option("--precision", options.precision,
                  "Of computation: fp32, or mixed (FP16 with FP32 master weights)")
      .value("fp32|mixed (mixed)");
  command
      .add_option("--wire", options.wire,
                  "Type of gradients in an all-reduce; several by commas. By default fp16 for "
                  "mixed, else fp32")
      .value("fp32|fp16|bf16");
  command.add_option("--strategy", options.strategies, "Strategies by commas, or all (the default)")
      .value("NAME,...");
  add_threshold_options(command, options.thresholds,
                        {.theta = "chosen",
                         .eta = "chosen",
                         .group = "chosen",
                         .segments = "chosen",
                         .servers = "one for each node"});
  command
      .add_option("--server-placement", options.server_placement,
                  "Which server holds a bucket: the next one, or the one with the fewest bytes")
      .value("round-robin|balanced (balanced)");
  command
      .add_option("--overlap", options.overlap,
                  "Overlap policy of all strategies but no-overlap (wait-free)")
      .value("wait-free|none|double-buffered|priority");
  add_profile_option(command, options.profile);
  command
      .add_option("--scale-gradients", options.gradient_scale,
                  "Multiply the elements of every gradient, to keep proportions on a slow network "
                  "(as in 0.0625); computation stays as it is")
      .value("S (1)");
  command.add_flag(
      "--exact-compute", options.compute_is_exact,
      "Take compute times as stated, without their interval and without input, as a replay "
      "does");
  command
      .add_option("--engine", options.engine,
                  "Engine that times schedules: auto is executor with a profile that calibrated a "
                  "transport; else step where no link is ever shared, else flow")
      .value("auto|step|flow|executor|simgrid (auto)");
}

namespace {

void scale_gradients(const std::string& text, Job& job) {
  job.gradient_scale =
      parsing_option("--scale-gradients", [&] { return parse_number(text, 1e-9, 1); });
  for (LoadedNetwork& network : job.networks) {
    for (models::Gradient& gradient : network.work.gradients) {
      gradient.elements = std::max<std::int64_t>(
          1, std::llround(static_cast<double>(gradient.elements) * job.gradient_scale));
    }
  }
}

}  // namespace

void check_output_of(const JobOptions& job, const char* option, const std::string& path) {
  std::vector<GivenPath> paths = {{option, path, PathUse::output},
                                  {"--cluster", job.cluster, PathUse::name_or_input},
                                  {"--placement", job.placement, PathUse::name_or_input},
                                  {"--profile", job.profile, PathUse::name_or_input}};
  for (const std::string& model : comma_list(job.model))
    paths.push_back({"--model", model, PathUse::name_or_input});
  check_paths(paths);
}

Job load_job(const JobOptions& options) {
  required(options.model, "--model", "resnet50");
  required(options.cluster, "--cluster", "jizhi-p40");
  Job job;
  for (const std::string& name :
       parsing_option("--model", [&] { return comma_list(options.model); })) {
    job.networks.push_back(load_network(name));
  }
  job.cluster = load_cluster(options.cluster, options.placement);
  job.profile = load_profile(options.profile, job.cluster);
  if (job.profile && job.profile->cluster != job.cluster.name) {
    fmt::print(stderr, "paceline: warning: profile {} was calibrated on {}, and is used for {}\n",
               job.profile->name, job.profile->cluster, job.cluster.name);
  }
  job.batch_per_rank = static_cast<int>(
      parsing_option("--batch", [&] { return parse_count(options.batch, 1, 1 << 20); }));
  job.precision =
      parsing_option("--precision", [&] { return models::precision_from_name(options.precision); });
  if (options.wire.empty()) {
    job.wires = {default_wire(job.precision)};
  } else {
    parsing_option("--wire", [&] {
      for (const std::string& name : comma_list(options.wire))
        job.wires.push_back(models::wire_type_from_name(name));
    });
  }
  job.strategies =
      load_strategies(options.strategies, job.cluster, job.profile ? &*job.profile : nullptr);
  job.thresholds = parse_thresholds(options.thresholds);
  if (!options.server_placement.empty())
    job.thresholds.placement = parsing_option("--server-placement", [&] {
      return models::server_placement_from_name(options.server_placement);
    });
  if (!options.overlap.empty())
    job.overlap =
        parsing_option("--overlap", [&] { return models::overlap_from_name(options.overlap); });
  job.compute_is_exact = options.compute_is_exact;
  if (!options.gradient_scale.empty()) scale_gradients(options.gradient_scale, job);
  job.engine =
      parsing_option("--engine", [&] { return simulator::engine_from_name(options.engine); });
  return job;
}

simulator::PredictionRequest Job::request(const LoadedNetwork& network, int ranks,
                                          models::WireType wire) const {
  return {.network = network.work,
          .cluster = cluster,
          .profile = profile ? &*profile : nullptr,
          .ranks = ranks,
          .batch_per_rank = batch_per_rank,
          .precision = precision,
          .wire = wire,
          .thresholds = thresholds,
          .engine = engine,
          .overlap = overlap,
          .stored_sample = network.stored_sample,
          .compute_is_exact = compute_is_exact,
          .stragglers = stragglers};
}

}  // namespace paceline::cli
