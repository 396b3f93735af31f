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
#include "simulator/iteration/matched_compute.h"

namespace paceline::job {
namespace {

// A rate with the batch at which it was measured.
struct RateAtBatch {
  PerSecond rate;
  int batch = 1;
};

constexpr double least_rate = 1e-3;
constexpr double most_rate = 1e9;

RateAtBatch parse_rate_at_batch(const std::string& text, int batch) {
  const std::size_t at = text.rfind('@');
  const std::string rate = text.substr(0, at);
  const bool is_bare =
      !rate.empty() && rate.find_first_not_of("0123456789.eE+- ") == std::string::npos;
  RateAtBatch result{
      is_bare ? PerSecond{parse_number(rate, least_rate, most_rate)} : parse_rate(rate), batch};
  if (result.rate.value() < least_rate || result.rate.value() > most_rate)
    throw InputError(fmt::format("{} is out of range", in_quotes(rate)),
                     fmt::format("write {} to {} samples/s", least_rate, most_rate));
  if (at != std::string::npos)
    result.batch = static_cast<int>(parse_count(text.substr(at + 1), 1, 1 << 20));
  return result;
}

std::vector<RateAtBatch> parse_rates(const char* option, const std::string& text, int batch) {
  return parsing_option(option, [&] {
    std::vector<RateAtBatch> rates;
    for (const std::string& part : comma_list(text)) {
      rates.push_back(parse_rate_at_batch(part, batch));
      for (std::size_t i = 0; i + 1 < rates.size(); ++i) {
        if (rates[i].batch == rates.back().batch)
          throw InputError(fmt::format("two rates at batch {}", rates.back().batch),
                           "give one for each batch, as in 253.1@64,31@8");
      }
    }
    return rates;
  });
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
      throw InputError(fmt::format("its throughput of {} ranks is of samples of {} elements, and "
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

  // A node cannot do more than its ranks do alone, but for what measurements vary by.
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

void state_compute(const StatedComputeOptions& options, const StatedJob& job,
                   std::optional<models::Profile>& profile) {
  for (const auto& [option, text] : {std::pair{"--throughput", &options.throughput},
                                     std::pair{"--node-throughput", &options.node_throughput}}) {
    if (!text->empty() && job.networks.size() > 1)
      throw InputError({option}, fmt::format("one rate for {} networks", job.networks.size()),
                       "give one --model");
  }
  for (const auto& [option, text] : {std::pair{"--slowdown", &options.slowdown},
                                     std::pair{"--beside-traffic", &options.beside_traffic}}) {
    if (!text->empty() && !options.node_throughput.empty())
      throw InputError({option}, "--node-throughput says it, too", "give one of the two");
  }
  Stater stater(job, profile);
  if (!options.throughput.empty())
    stater.rates_alone(parse_rates("--throughput", options.throughput, job.batch_per_rank));
  if (!options.node_throughput.empty()) {
    const std::vector<RateAtBatch> rates =
        parse_rates("--node-throughput", options.node_throughput, job.batch_per_rank);
    if (rates.size() != 1)
      throw InputError({"--node-throughput"}, "several rates", "give that of one batch");
    stater.rate_of_node(rates.front(), !options.throughput.empty());
  } else {
    stater.rates_of_profile();
  }
  const auto number = [](const char* option, const std::string& text, double least) {
    return text.empty() ? std::nullopt : std::optional(parsing_option(option, [&] {
      return parse_number(text, least, simulator::most_beside);
    }));
  };
  const std::optional<double> factor = number("--slowdown", options.slowdown, 0.1);
  const std::optional<double> beside = number("--beside-traffic", options.beside_traffic, 1);
  if (factor || beside) stater.slowdown(factor, beside);
}

}  // namespace paceline::job
