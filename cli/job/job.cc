// Tests: tests/cli (end to end).
#include "cli/job/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "cli/job/questions.h"
#include "models/base/parse_units.h"
#include "simulator/cost/device_factor.h"
#include "simulator/cost/library_curve.h"
#include "simulator/cost/link_factors.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::job {
namespace {

bool is_timed_on(const models::Strategy& strategy, const models::Cluster& cluster,
                 const models::Profile* profile) {
  const auto library = strategy.library();
  return !library || simulator::has_library_curve(profile, *library) ||
         (library == models::Library::nccl && simulator::is_gpu(cluster.device));
}

// Whether a table has it where nobody names strategies: what runtimes on such devices run. NCCL, which
// sums between GPUs, has no servers.
bool is_by_default(const models::Strategy& strategy, const models::Cluster& cluster) {
  return strategy.on_servers() == nullptr || !simulator::is_gpu(cluster.device);
}

// The strategies of --strategy. All of them are those that run on the cluster.
std::vector<const models::Strategy*> load_strategies(const std::string& option,
                                                     const models::Cluster& cluster,
                                                     const models::Profile* profile, bool others) {
  std::vector<const models::Strategy*> chosen;
  const auto add_others = [&] {
    for (const models::Strategy& strategy : models::other_system_catalogue()) {
      if (others && std::find(chosen.begin(), chosen.end(), &strategy) == chosen.end())
        chosen.push_back(&strategy);
    }
  };
  if (option.empty() || option == "all") {
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      if (is_timed_on(strategy, cluster, profile) &&
          (option == "all" || is_by_default(strategy, cluster)))
        chosen.push_back(&strategy);
    }
    add_others();
    return chosen;
  }
  for (const std::string& name : comma_list(option)) {
    chosen.push_back(parsing_option("--strategy", [&] { return &models::strategy(name); }));
  }
  add_others();
  return chosen;
}

// Puts other NICs in place of the cluster's. What a profile says of these is then not used.
void take_nic(const std::string& option, Job& job) {
  parsing_option("--nic", [&] {
    job.cluster = models::with_nic(std::move(job.cluster), parse_nic(option));
    job.nic = option;
    if (!job.profile) return;
    models::Profile& profile = *job.profile;
    if (profile.transport)
      throw InputError(fmt::format("profile {} calibrated messages over its NIC", profile.name),
                       "add --profile none, or leave --nic out");
    profile.nic_latency.reset();
    profile.nic_bandwidth.reset();
    profile.nic_both_ways.reset();
    std::erase_if(profile.curves,
                  [](const models::CalibratedCurve& curve) { return curve.between_nodes; });
  });
}

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

// Changes the links and the devices of the cluster, and what the profile says of them.
void take_what_if(const std::string& text, Job& job) {
  const Question question = parse_better_parts(text);
  const simulator::LinkFactors links{question.bandwidth, question.latency};
  const auto changed = [&](auto of) {
    return simulator::with_device(simulator::with_links(std::move(of), links), question.compute);
  };
  job.cluster = parsing_option("--what-if", [&] { return changed(std::move(job.cluster)); });
  if (job.profile) job.profile = changed(*std::move(job.profile));
  job.what_if = text;
}

}  // namespace

std::vector<GivenPath> given_paths(const JobOptions& job,
                                   const std::vector<OutputOption>& outputs) {
  std::vector<GivenPath> paths;
  for (const auto& [option, path, kind] : outputs) paths.push_back(output_path(option, path, kind));
  paths.insert(paths.end(), {{"--cluster", job.cluster, PathUse::name_or_input},
                             {"--placement", job.placement, PathUse::name_or_input},
                             {"--profile", job.profile, PathUse::name_or_input},
                             {"--plan", job.plan, PathUse::input}});
  if (job.model.empty()) return paths;
  for (const std::string& model : parsing_option("--model", [&] { return comma_list(job.model); }))
    paths.push_back({"--model", model, PathUse::name_or_input});
  return paths;
}

bool is_timed(const models::Strategy& strategy, const Job& job) {
  return is_timed_on(strategy, job.cluster, job.profile ? &*job.profile : nullptr);
}

int ranks_of(const JobOptions& options, const Job& job) {
  if (!options.ranks.empty()) return parse_ranks(options.ranks, job.cluster);
  if (job.plan) return parse_ranks(std::to_string(job.plan->plan.ranks), job.cluster);
  throw InputError("--ranks is missing", fmt::format("give 1 to {}, as in --ranks {}",
                                                     job.cluster.ranks(), job.cluster.ranks()));
}

Job load_job(const JobOptions& options, const GivenValues& given) {
  Job job;
  if (given.network) {
    job.networks.push_back(load_network(*given.network, options.sequence));
  } else {
    require_option(options.model, "--model", "resnet50");
    for (const std::string& name :
         parsing_option("--model", [&] { return comma_list(options.model); })) {
      job.networks.push_back(load_network(name, options.sequence));
    }
  }
  if (!given.cluster) require_option(options.cluster, "--cluster", "jizhi-p40");
  job.cluster =
      placed(given.cluster ? *given.cluster : load_cluster(options.cluster), options.placement);
  job.profile = given.profile ? given.profile : load_profile(options.profile, job.cluster);
  if (!options.nic.empty()) take_nic(options.nic, job);
  job.batch_per_rank = static_cast<int>(
      parsing_option("--batch", [&] { return parse_count(options.batch, 1, 1 << 20); }));
  job.accumulate = optional_count("--accumulate", options.accumulate, simulator::most_accumulated)
                       .value_or(job.accumulate);
  job.precision =
      parsing_option("--precision", [&] { return models::precision_from_name(options.precision); });
  if (given.plan || !options.plan.empty()) {
    refuse_beside_plan({{"--strategy", options.strategies},
                        {"--wire", options.wire},
                        {"--others", options.others ? "given" : ""},
                        {"--server-placement", options.server_placement},
                        {"--overlap", options.overlap}},
                       options.thresholds);
    job.plan = given.plan ? *given.plan : read_plan(options.plan);
    job.plan_file = given.plan ? "plan" : options.plan;
    job.wires = {job.plan->plan.wire};
  } else if (options.wire.empty()) {
    job.wires = {models::default_wire(job.precision)};
  } else {
    parsing_option("--wire", [&] {
      for (const std::string& name : comma_list(options.wire))
        job.wires.push_back(models::wire_type_from_name(name));
    });
  }
  job.names_strategies = job.plan || (!options.strategies.empty() && options.strategies != "all");
  job.strategies =
      load_strategies(job.plan ? job.plan->plan.strategy : options.strategies, job.cluster,
                      job.profile ? &*job.profile : nullptr, options.others);
  if (options.strategies.empty() && !job.plan)
    for (const models::Strategy& strategy : models::strategy_catalogue())
      if (!is_by_default(strategy, job.cluster)) job.without_servers.push_back(&strategy);
  if (options.is_added_to && options.others && !job.names_strategies)
    throw InputError({"--others"}, "the models of other systems are compared in any case",
                     "leave it out");
  job.thresholds = parse_thresholds(options.thresholds);
  if (!options.server_placement.empty())
    read_threshold(*simulator::threshold_field("server-placement"), options.server_placement,
                   job.thresholds);
  if (!job.plan && !options.is_added_to) check_taken(job.thresholds, job.strategies);
  if (!options.overlap.empty())
    job.overlap =
        parsing_option("--overlap", [&] { return models::overlap_from_name(options.overlap); });
  job.baseline_ranks = optional_count("--baseline", options.baseline, models::max_ranks);
  job.compute_is_exact = options.compute_is_exact;
  job.ignore_memory = options.ignore_memory;
  if (!options.gradient_scale.empty()) {
    for (const models::Strategy* strategy : job.strategies) {
      if (strategy->preconditions())
        throw InputError({"--scale-gradients"},
                         fmt::format("the factors of {} have no smaller size", strategy->name),
                         "leave it out, or choose another strategy");
    }
    scale_gradients(options.gradient_scale, job);
  }
  job.engine =
      parsing_option("--engine", [&] { return simulator::engine_from_name(options.engine); });
  if (!options.nccl.empty())
    parsing_option("--nccl", [&] { return simulator::nccl_tables(options.nccl); });
  job.nccl_version = options.nccl;
  // The strategy that a job trained with is the one that is named, or else what frameworks do.
  const bool names_one = job.names_strategies && job.strategies.size() == 1;
  state_compute(
      options.compute,
      {.networks = job.networks,
       .cluster = job.cluster,
       .precision = job.precision,
       .batch_per_rank = job.batch_per_rank,
       .strategy = names_one ? *job.strategies.front() : models::strategy("fused-ring"),
       .request = [&job](const LoadedNetwork& network,
                         int ranks) { return job.request(network, ranks, job.wires.front()); }},
      job.profile);
  // Throughputs of several ranks were measured on the cluster as it is, and are solved for before.
  if (!options.what_if.empty()) take_what_if(options.what_if, job);
  return job;
}

Job load_job(const JobOptions& options, const StragglerOptions& stragglers,
             const GivenValues& given) {
  Job job = load_job(options, given);
  const int ranks = ranks_of(options, job);
  job.stragglers = load_stragglers(stragglers, ranks);
  slow_nodes(job.cluster, stragglers, ranks);
  return job;
}

simulator::PredictionRequest Job::request(const LoadedNetwork& network, int ranks,
                                          models::WireType wire) const {
  return {.network = network.work,
          .cluster = cluster,
          .profile = profile ? &*profile : nullptr,
          .ranks = ranks,
          .batch_per_rank = batch_per_rank,
          .accumulate = accumulate,
          .precision = precision,
          .wire = wire,
          .thresholds = thresholds,
          .engine = engine,
          .nccl_version = nccl_version,
          .overlap = overlap,
          .stored_sample = network.stored_sample,
          .compute_is_exact = compute_is_exact,
          .time_budget = names_strategies ? simulator::TimeBudget::unlimited : time_budget,
          .stragglers = stragglers,
          .baseline_ranks = baseline_ranks,
          .sampling_seed = sampling_seed};
}

}  // namespace paceline::job
