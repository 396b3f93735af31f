// Tests: tests/cli (end to end).
#include "cli/job/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "cli/job/questions.h"
#include "models/cluster/placement.h"
#include "simulator/cost/device_factor.h"
#include "simulator/cost/library_curve.h"
#include "simulator/cost/link_factors.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/question/question_fields.h"

namespace paceline::job {
namespace {

bool is_timed_on(const models::Strategy& strategy, const models::Cluster& cluster,
                 const models::Profile* profile) {
  const auto library = strategy.library();
  return !library || simulator::has_library_curve(profile, *library) ||
         (library == models::Library::nccl && simulator::sums_by_nccl(cluster.device));
}

// Whether a table has it where nobody names strategies: what runtimes on such devices run. Libraries that
// sum between devices have no servers.
bool is_by_default(const models::Strategy& strategy, const models::Cluster& cluster) {
  return strategy.traits().by_kernels || !simulator::has_collectives(cluster.device);
}

// Whether somebody would shard the training of one of the networks: GPUs of 2020 and later that train
// transformers.
bool are_sharded_by_default(const std::vector<LoadedNetwork>& networks,
                            const models::Device& device) {
  constexpr int first_year = 2020;
  return simulator::has_collectives(device) && device.year.value_or(0) >= first_year &&
         std::any_of(networks.begin(), networks.end(),
                     [](const LoadedNetwork& network) { return network.work.sequence > 0; });
}

// The strategies that are asked for. All of them are those that run on the cluster.
std::vector<const models::Strategy*> load_strategies(const simulator::AskedStrategies& asked,
                                                     const Job& job) {
  const models::Cluster& cluster = job.cluster;
  const models::Profile* profile = job.profile ? &*job.profile : nullptr;
  std::vector<const models::Strategy*> chosen = asked.named;
  if (!asked.are_named()) {
    if (are_sharded_by_default(job.networks, cluster.device))
      for (const models::Strategy& strategy : models::sharded_catalogue())
        chosen.push_back(&strategy);
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      if (is_timed_on(strategy, cluster, profile) &&
          (asked.all || is_by_default(strategy, cluster)))
        chosen.push_back(&strategy);
    }
  }
  // The gradients of experts are summed over some of the ranks, as sharded strategies alone do.
  if (!asked.are_named() && job.question.layout.expert_parts() > 1)
    std::erase_if(chosen, [](const models::Strategy* strategy) { return !strategy->sharded(); });
  if (!asked.others) return chosen;
  for (const models::Strategy& strategy : models::other_system_catalogue()) {
    if (std::find(chosen.begin(), chosen.end(), &strategy) == chosen.end())
      chosen.push_back(&strategy);
  }
  return chosen;
}

// Puts other NICs in place of the cluster's. What a profile says of these is then not used.
void take_nic(const std::string& nic, Job& job) {
  parsing_option("--nic", [&] {
    job.cluster = models::with_nic(std::move(job.cluster), parse_nic(nic));
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

void scale_gradients(double scale, Job& job) {
  for (const models::Strategy* strategy : job.strategies) {
    if (strategy->traits().takes_factors)
      throw InputError({"--scale-gradients"},
                       fmt::format("the factors of {} have no smaller size", strategy->name),
                       "leave it out, or choose another strategy");
  }
  for (LoadedNetwork& network : job.networks) {
    for (models::Gradient& gradient : network.work.gradients) {
      gradient.elements =
          std::max<std::int64_t>(1, std::llround(static_cast<double>(gradient.elements) * scale));
    }
  }
}

// Replaces the cluster's share of the peak rate, which computation without a measured rate reaches.
void take_compute_efficiency(double share, Job& job) {
  const bool is_calibrated =
      job.profile && (!job.profile->throughputs.empty() || !job.profile->layers.empty());
  if (!job.question.compute.throughput.empty() || job.question.compute.node_throughput)
    throw InputError({"--compute-efficiency"}, "a throughput is stated, too",
                     "leave one of the two out");
  if (is_calibrated)
    throw InputError({"--compute-efficiency"},
                     fmt::format("profile {} calibrated computation", job.profile->name),
                     "add --profile none, or leave it out");
  job.cluster.device.compute_efficiency =
      Figure<double>::exact(share, Provenance::datasheet, "--compute-efficiency");
}

// Changes the links and the devices of the cluster, and what the profile says of them.
void take_what_if(const std::string& text, Job& job) {
  const WhatIfQuestion question = parse_better_parts(text);
  const simulator::LinkFactors links{question.bandwidth, question.latency};
  const auto changed = [&](auto of) {
    return simulator::with_device(simulator::with_links(std::move(of), links), question.compute);
  };
  job.cluster = parsing_option("--what-if", [&] { return changed(std::move(job.cluster)); });
  if (job.profile) job.profile = changed(*std::move(job.profile));
}

// The plan that is given, or that of --plan: its strategy and its wire type are the only ones.
void take_plan(const GivenValues& given, Job& job) {
  refuse_beside_plan(simulator::options_beside_plan(job.question));
  job.plan = given.plan ? *given.plan : read_plan(job.question.plan);
  job.plan_file = given.plan ? "plan" : job.question.plan;
  job.question.layout = job.plan->plan.layout;
  job.wires = {job.plan->plan.wire};
  job.strategies = parsing_option("--strategy", [&]() -> std::vector<const models::Strategy*> {
    return {&models::strategy(job.plan->plan.strategy)};
  });
  job.names_strategies = true;
}

// The strategies and wire types of the question.
void take_strategies(bool is_added_to, Job& job) {
  const simulator::AskedStrategies& asked = job.question.strategies;
  job.wires = job.question.wires;
  if (job.wires.empty()) job.wires = {models::default_wire(job.question.precision)};
  job.names_strategies = asked.are_named();
  job.strategies = load_strategies(asked, job);
  job.tries_layouts = asked.are_chosen_here() && job.question.layout == models::Layout{} &&
                      are_sharded_by_default(job.networks, job.cluster.device);
  if (asked.are_chosen_here())
    for (const models::Strategy& strategy : models::strategy_catalogue())
      if (!is_by_default(strategy, job.cluster)) job.without_servers.push_back(&strategy);
  if (is_added_to && asked.others && !job.names_strategies)
    throw InputError({"--others"}, "the models of other systems are compared in any case",
                     "leave it out");
  simulator::check_together(job.question.thresholds);
  if (!is_added_to) check_taken(job.question.thresholds, job.strategies);
}

}  // namespace

std::vector<GivenPath> given_paths(const simulator::Question& question,
                                   const std::vector<OutputOption>& outputs) {
  std::vector<GivenPath> paths;
  for (const auto& [option, path, kind] : outputs) paths.push_back(output_path(option, path, kind));
  paths.insert(paths.end(), {{"--cluster", question.cluster, PathUse::name_or_input},
                             {"--placement", question.placement, PathUse::name_or_input},
                             {"--profile", question.profile, PathUse::name_or_input},
                             {"--plan", question.plan, PathUse::input}});
  for (const std::string& model : question.networks)
    paths.push_back({"--model", model, PathUse::name_or_input});
  return paths;
}

bool is_timed(const models::Strategy& strategy, const Job& job) {
  return is_timed_on(strategy, job.cluster, job.profile ? &*job.profile : nullptr);
}

int ranks_of(const Job& job) {
  if (job.question.nodes) {
    if (!job.question.ranks.empty())
      throw InputError({"--nodes"}, "there is --ranks, too", "leave one of the two out");
    const std::int64_t ranks =
        static_cast<std::int64_t>(*job.question.nodes) * job.cluster.ranks_per_node;
    parsing_option("--nodes", [&] { models::check_ranks(job.cluster, ranks); });
    return static_cast<int>(ranks);
  }
  if (!job.question.ranks.empty()) return parse_ranks(job.question.ranks, job.cluster);
  if (job.plan) return parse_ranks(std::to_string(job.plan->plan.all_ranks()), job.cluster);
  throw InputError(
      "--ranks is missing",
      fmt::format("give 1 to {}, as in --ranks {}, or full nodes by --nodes", job.cluster.ranks(),
                  std::min(job.cluster.ranks(), 8 * job.cluster.ranks_per_node)));
}

// Tokens of an iteration become samples of the networks' sequence.
void count_samples(Job& job) {
  std::optional<simulator::GlobalBatch>& batch = job.question.global_batch;
  if (!batch) return;
  const std::int64_t samples = batch->samples(job.networks.front().work.sequence);
  for (const LoadedNetwork& network : job.networks)
    if (batch->samples(network.work.sequence) != samples)
      throw InputError({"--global-batch"}, "samples of these networks have different tokens",
                       "give the samples, or one network");
  batch = simulator::GlobalBatch{samples};
}

Job load_job(const simulator::Question& question, const LoadRequest& request) {
  const GivenValues& given = request.given;
  Job job;
  job.question = question;
  if (given.network) {
    job.networks.push_back(load_network(*given.network, question.sequence));
  } else {
    require_option(question.networks.empty() ? "" : question.networks.front(), "--model",
                   "resnet50");
    for (const std::string& name : question.networks)
      job.networks.push_back(load_network(name, question.sequence));
  }
  count_samples(job);
  if (!given.cluster) require_option(question.cluster, "--cluster", "jizhi-p40");
  job.cluster =
      placed(given.cluster ? *given.cluster : load_cluster(question.cluster), question.placement);
  job.profile = given.profile ? given.profile : load_profile(question.profile, job.cluster);
  if (!question.nic.empty()) take_nic(question.nic, job);
  if (question.stack)
    parsing_option("--stack", [&] { models::take_stack(*question.stack, job.cluster); });
  if (question.attention_kernel)
    parsing_option("--attention-kernel",
                   [&] { models::take_attention_kernel(*question.attention_kernel, job.cluster); });
  if (question.compute_efficiency) take_compute_efficiency(*question.compute_efficiency, job);
  if (given.plan || !question.plan.empty()) {
    take_plan(given, job);
  } else {
    take_strategies(request.is_added_to, job);
  }
  if (question.gradient_scale != 1) scale_gradients(question.gradient_scale, job);
  // The strategy that a job trained with is the one that is named, or else what frameworks do.
  const bool names_one = job.names_strategies && job.strategies.size() == 1;
  state_compute(
      question.compute,
      {.networks = job.networks,
       .cluster = job.cluster,
       .precision = question.precision,
       .batch_per_rank = question.batch_per_rank,
       .strategy = names_one ? *job.strategies.front() : models::strategy("fused-ring"),
       .request = [&job](const LoadedNetwork& network,
                         int ranks) { return job.request(network, ranks, job.wires.front()); }},
      job.profile);
  // Throughputs of several ranks were measured on the cluster as it is, and are solved for before.
  if (!question.what_if.empty()) take_what_if(question.what_if, job);
  if (request.is_of_one_size) {
    const int ranks = ranks_of(job);
    job.question = simulator::with_batches(std::move(job.question), ranks);
    job.stragglers = load_stragglers(question.stragglers, ranks);
    slow_nodes(job.cluster, question.stragglers, ranks);
  }
  return job;
}

simulator::PredictionRequest Job::request(const LoadedNetwork& network, int ranks,
                                          models::WireType wire) const {
  simulator::PredictionRequest asked =
      simulator::request_for(question, network.work, network.stored_sample, cluster,
                             profile ? &*profile : nullptr, ranks, wire);
  asked.time_budget = names_strategies ? simulator::TimeBudget::unlimited : time_budget;
  asked.stragglers = stragglers;
  asked.sampling_seed = sampling_seed;
  return asked;
}

}  // namespace paceline::job
