// Tests: tests/cli/predict_test.py (end to end).
#include "cli/job/stated_compute.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"
#include "models/network/zoo.h"
#include "simulator/prediction/matched_compute.h"

namespace paceline::job {
namespace {

// A rate with the batch at which it was measured.
struct RateAtBatch {
  PerSecond rate;
  int batch = 1;
};

// The rates, of which those that name no batch are at this one. Throws InputError that names the option.
std::vector<RateAtBatch> at_batches(const char* option,
                                    const std::vector<simulator::StatedRate>& stated, int batch) {
  std::vector<RateAtBatch> rates;
  for (const simulator::StatedRate& one : stated) {
    rates.push_back({one.rate, one.batch.value_or(batch)});
    for (std::size_t i = 0; i + 1 < rates.size(); ++i) {
      if (rates[i].batch == rates.back().batch)
        throw InputError({option}, fmt::format("two rates at batch {}", rates.back().batch),
                         "give one for each batch, as in 253.1@64,31@8");
    }
  }
  return rates;
}

// Whether an entry of a profile is about the network at the precision.
struct IsOf {
  const std::string& network;
  models::Precision precision;
  template <class Entry>
  bool operator()(const Entry& entry) const {
    return entry.network == network && entry.precision == precision;
  }
};

class Stater {
 public:
  Stater(const StatedJob& job, std::optional<models::Profile>& profile)
      : job_(job), profile_(profile) {}

  void rates_alone(const std::vector<RateAtBatch>& rates) {
    const LoadedNetwork& network = job_.networks.front();
    models::Profile& profile = ensure("--throughput");
    std::erase_if(profile.throughputs, is_of(network));
    std::erase_if(profile.slowdowns, is_of(network));
    std::erase_if(profile.layers, is_of(network));
    for (const RateAtBatch& entry : rates) {
      models::CalibratedThroughput throughput{network.work.name, job_.precision, entry.batch,
                                              figure(entry.rate, "--throughput")};
      throughput.sequence = network.work.sequence;
      profile.throughputs.push_back(std::move(throughput));
    }
  }

  void rate_of_node(const RateAtBatch& node, bool alone_is_given) {
    const LoadedNetwork& network = job_.networks.front();
    const int ranks = job_.cluster.ranks_per_node;
    if (ranks == 1)
      throw InputError({"--node-throughput"}, "a node of this cluster has one rank",
                       "give its rate as --throughput");
    models::Profile& profile = ensure("--node-throughput");
    if (!alone_is_given) {
      std::erase_if(profile.throughputs, is_of(network));
      std::erase_if(profile.slowdowns, is_of(network));
    }
    check_node(profile, network, node, ranks);
    parsing_option("--node-throughput", [&] {
      calibrate(network, node.batch, ranks, figure(node.rate, "--node-throughput"));
    });
  }

  // `factor` and `beside` of a models::CalibratedSlowdown. That which is not given is left as the
  // profile has it.
  void slowdown(std::optional<double> factor, std::optional<double> beside) {
    models::Profile& profile = ensure(factor ? "--slowdown" : "--beside-traffic");
    const auto stated = [](double value, const char* option) {
      return Figure<double>::exact(value, Provenance::calibrated, option);
    };
    for (const LoadedNetwork& network : job_.networks) {
      const auto known =
          std::find_if(profile.slowdowns.begin(), profile.slowdowns.end(), is_of(network));
      models::CalibratedSlowdown slowdown{network.work.name, job_.precision,
                                          stated(1, "--beside-traffic")};
      if (known != profile.slowdowns.end()) slowdown = *known;
      if (factor) slowdown.factor = stated(*factor, "--slowdown");
      if (beside) slowdown.beside_traffic = stated(*beside, "--beside-traffic");
      std::erase_if(profile.slowdowns, is_of(network));
      profile.slowdowns.push_back(std::move(slowdown));
    }
  }

  // Solves for what the profile's own throughputs of several ranks say.
  void rates_of_profile() {
    if (!profile_) return;
    const std::vector<models::CalibratedThroughput> all = profile_->throughputs;
    for (const models::CalibratedThroughput& entry : all) {
      if (entry.ranks == 1) continue;
      for (const LoadedNetwork& network : job_.networks) {
        if (entry.network != network.work.name || entry.precision != job_.precision) continue;
        const std::string place = "profile " + profile_->name;
        parsing_option(place.c_str(), [&] {
          models::check_ranks(job_.cluster, entry.ranks);
          calibrate(as_measured(network, entry), entry.batch_per_rank, entry.ranks, entry.samples);
        });
      }
    }
  }

 private:
  // The network for samples of the length that the throughput is of.
  static LoadedNetwork as_measured(const LoadedNetwork& network,
                                   const models::CalibratedThroughput& entry) {
    if (entry.sequence == 0 || entry.sequence == network.work.sequence) return network;
    if (!models::is_in_zoo(network.work.name) || network.work.sequence == 0)
      throw InputError(
          fmt::format("its throughput of {} ranks holds for samples of {} elements, and "
                      "those of the job have {}",
                      entry.ranks, entry.sequence, network.work.sequence),
          "predict with --sequence as it was measured");
    LoadedNetwork measured = network;
    measured.work =
        models::work(models::zoo_network(network.work.name).with_sequence(entry.sequence));
    return measured;
  }

  // The job's profile, which is made where there is none.
  models::Profile& ensure(const char* option) {
    if (!profile_)
      profile_ = models::Profile{.name = option,
                                 .cluster = job_.cluster.name,
                                 .device = job_.cluster.device.name,
                                 .origin = "options of the command"};
    return *profile_;
  }

  [[nodiscard]] IsOf is_of(const LoadedNetwork& network) const {
    return {network.work.name, job_.precision};
  }

  static Figure<PerSecond> figure(PerSecond rate, const char* option) {
    return Figure<PerSecond>::exact(rate, Provenance::calibrated, option);
  }

  // A node cannot do more than its ranks do alone, except for what measurements vary by.
  void check_node(const models::Profile& profile, const LoadedNetwork& network,
                  const RateAtBatch& node, int ranks) const {
    constexpr double noise = 1.1;
    for (const models::CalibratedThroughput& entry : profile.throughputs) {
      if (!is_of(network)(entry) || entry.ranks != 1 || entry.batch_per_rank != node.batch)
        continue;
      const PerSecond most = static_cast<double>(ranks) * entry.samples.value;
      if (node.rate > noise * most)
        throw InputError({"--node-throughput"},
                         fmt::format("{} are more than {} ranks of {}", to_text(node.rate), ranks,
                                     to_text(entry.samples.value)),
                         fmt::format("that is {} without any loss", to_text(most)));
    }
  }

  void calibrate(const LoadedNetwork& network, int batch, int ranks,
                 const Figure<PerSecond>& samples) {
    simulator::PredictionRequest request = job_.request(network, ranks);
    request.profile = &*profile_;
    request.batch_per_rank = batch;
    request.time_budget = simulator::TimeBudget::unlimited;
    request.stragglers = {};
    request.baseline_ranks = {};
    profile_ = simulator::calibrated_with(request, job_.strategy, samples);
  }

  const StatedJob& job_;
  std::optional<models::Profile>& profile_;
};

}  // namespace

void state_compute(const simulator::StatedCompute& stated, const StatedJob& job,
                   std::optional<models::Profile>& profile) {
  const bool is_of_node = stated.node_throughput.has_value();
  for (const auto& [option, is_given] : {std::pair{"--throughput", !stated.throughput.empty()},
                                         std::pair{"--node-throughput", is_of_node}}) {
    if (is_given && job.networks.size() > 1)
      throw InputError({option}, fmt::format("one rate for {} networks", job.networks.size()),
                       "give one --model");
  }
  for (const auto& [option, is_given] :
       {std::pair{"--slowdown", stated.slowdown.has_value()},
        std::pair{"--beside-traffic", stated.beside_traffic.has_value()}}) {
    if (is_given && is_of_node)
      throw InputError({option}, "--node-throughput says it, too", "give one of the two");
  }
  Stater stater(job, profile);
  if (!stated.throughput.empty())
    stater.rates_alone(at_batches("--throughput", stated.throughput, job.batch_per_rank));
  if (is_of_node) {
    stater.rate_of_node(
        {stated.node_throughput->rate, stated.node_throughput->batch.value_or(job.batch_per_rank)},
        !stated.throughput.empty());
  } else {
    stater.rates_of_profile();
  }
  if (stated.slowdown || stated.beside_traffic)
    stater.slowdown(stated.slowdown, stated.beside_traffic);
}

}  // namespace paceline::job
