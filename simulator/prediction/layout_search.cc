// Tests: tests/simulator/layout_search_test.cc.
#include "simulator/prediction/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/layout/pipeline_order.h"
#include "models/layout/rank_work.h"
#include "models/layout/sharding.h"
#include "models/layout/stages.h"
#include "simulator/prediction/job_settings.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {
namespace {

constexpr int largest_batch = 64;
constexpr int most_chunks = 8;
constexpr std::int64_t long_sequence = 32'768;  // from which contexts are worth their exchanges

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> found;
  for (std::int64_t i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) found.push_back(static_cast<int>(i));
  return found;
}

// This is a rank's share of the network with the time of each layer for one batch.
struct Share {
  models::NetworkWork network;
  std::vector<Seconds> work;  // of each layer, both passes, with what is exposed of exchanges
};

struct StageSums {
  Seconds work;
  Seconds first_chunk;
  double parameters = 0;
  double kept = 0;  // elements of one sample
};

// A layout with its batches, whatever the strategy.
struct Base {
  PredictionOptions options;
  const Share* share = nullptr;
  std::vector<StageSums> stages = {};
  Seconds least = {};
};

// The search tries these.
constexpr std::array recomputes = {models::Recompute::none,
                                   models::Recompute{models::RecomputeKind::per_op},
                                   models::Recompute::full};

class Search {
 public:
  explicit Search(const LayoutSearchRequest& request)
      : request_(request),
        job_(request.job),
        capacity_(job_.cluster.device.memory.value),
        strategies_(strategies()),
        least_kept_(least_kept()) {}

  FoundLayouts run() {
    for (const models::Layout& layout : layouts())
      for (const int batch : batches(layout))
        for (const models::Recompute& recompute : recomputes) add(layout, batch, recompute);
    if (bases_.empty())
      throw InputError({"--global-batch"},
                       fmt::format("no layout of {} ranks divides {} samples", job_.ranks,
                                   request_.global_batch),
                       "choose another number of samples or ranks");
    std::stable_sort(bases_.begin(), bases_.end(),
                     [](const Base& a, const Base& b) { return a.least < b.least; });
    found_.candidates = static_cast<std::int64_t>(bases_.size() * strategies_.size());
    time_in_order();
    if (found_.timed.empty()) throw_too_large();
    std::stable_sort(
        found_.timed.begin(), found_.timed.end(),
        [](const LayoutChoice& a, const LayoutChoice& b) { return *a.iteration < *b.iteration; });
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::vector<const models::Strategy*> strategies() const {
    const bool by_nccl = sums_by_nccl(job_.cluster.device);
    std::vector<const models::Strategy*> all = {&models::strategy(by_nccl ? "nccl" : "fused-ring")};
    for (const std::string_view name : {"zero1", "fsdp", "hsdp"})
      all.push_back(&models::strategy(name));
    return all;
  }

  [[nodiscard]] double least_kept() const {
    const models::Optimizer optimizer = job_.optimizer.of(job_.network);
    double least = models::most_optimizer_states;
    for (const models::LayerWork& layer : job_.network.layers)
      if (const auto parameters = static_cast<double>(layer.parameter_elements()); parameters > 0)
        least = std::min(least,
                         models::optimizer_cost(std::span(&layer, 1), optimizer).kept / parameters);
    return least;
  }

  [[nodiscard]] std::vector<models::Layout> layouts() const {
    std::int64_t heads = 1;
    std::int64_t experts = 1;
    std::int64_t blocks = 0;
    std::string_view last;
    for (const models::LayerWork& layer : job_.network.layers) {
      if (layer.heads > 0) heads = layer.heads;
      if (layer.experts > 0) experts = layer.experts;
      const std::string_view block = models::block_of(layer.name);
      if (!block.empty() && block != last) {
        ++blocks;
        last = block;
      }
    }
    const bool is_language = job_.network.sequence > 0 && heads > 1;
    std::vector<models::Layout> all;
    for (const int tensor : divisors(job_.ranks, is_language ? job_.cluster.ranks_per_node : 1)) {
      if (heads % tensor != 0) continue;
      const int contexts = job_.network.sequence >= long_sequence ? job_.cluster.ranks_per_node : 1;
      for (const int context : divisors(job_.ranks / tensor, contexts))
        for (const int pipeline : divisors(job_.ranks / tensor / context, is_language ? blocks : 1))
          for (int chunks = 1; chunks <= (pipeline > 1 ? most_chunks : 1) &&
                               std::int64_t{pipeline} * chunks <= blocks + (pipeline == 1 ? 1 : 0);
               chunks *= 2)
            for (const int expert : expert_ranks(experts, tensor, job_.ranks / pipeline))
              all.push_back({.tensor = tensor,
                             .context = context,
                             .expert = expert,
                             .pipeline = pipeline,
                             .chunks = chunks});
    }
    return all;
  }

  // Powers of two among what experts may be shared out to; 1 is what tensor parallelism does.
  [[nodiscard]] static std::vector<int> expert_ranks(std::int64_t experts, int tensor,
                                                     int of_stage) {
    std::vector<int> all;
    if (experts == 1 || experts % tensor == 0) all.push_back(1);
    for (int expert = 2; expert <= std::min<std::int64_t>(experts, of_stage); expert *= 2)
      if (expert > tensor && expert % tensor == 0 && experts % expert == 0 &&
          of_stage % expert == 0)
        all.push_back(expert);
    return all;
  }

  [[nodiscard]] std::vector<int> batches(const models::Layout& layout) const {
    const std::int64_t groups = job_.ranks / layout.ranks_of_sample();
    if (request_.global_batch % groups != 0) return {};
    const std::int64_t of_group = request_.global_batch / groups;
    std::vector<int> fitting;
    for (const int batch : divisors(of_group, largest_batch)) {
      const bool is_power = (batch & (batch - 1)) == 0;
      const std::int64_t passes = of_group / batch;
      const bool fits_stages = layout.chunks == 1 || passes % layout.pipeline == 0;
      if (is_power && fits_stages && passes <= most_accumulated) fitting.push_back(batch);
    }
    return fitting;
  }

  void add(const models::Layout& layout, int batch, const models::Recompute& recompute) {
    Base base{job_};
    base.options.layout = layout;
    base.options.batch_per_rank = batch;
    base.options.recompute = recompute;
    base.options.accumulate =
        static_cast<int>(request_.global_batch / (job_.ranks / layout.ranks_of_sample()) / batch);
    base.share = &share_of(base.options);
    base.stages = sums(base);
    Seconds before;
    for (const StageSums& stage : base.stages) {
      base.least = std::max(base.least, before + base.options.accumulate * stage.work);
      before += stage.first_chunk;
    }
    bases_.push_back(std::move(base));
  }

  // The share and its times are the same whatever the stages.
  const Share& share_of(const PredictionOptions& options) {
    const auto key = std::tuple(options.layout.tensor, options.layout.context,
                                options.layout.expert, options.batch_per_rank, options.recompute);
    std::unique_ptr<Share>& share = shares_[key];
    if (share) return *share;
    PredictionOptions alone = options;
    alone.layout.pipeline = alone.layout.chunks = 1;
    alone.accumulate = 1;
    alone.baseline_ranks.reset();
    JobSettings settings(request_of(alone));
    const PredictorSetting& at = settings.at(settings.request().ranks, Bound::stated);
    share = std::make_unique<Share>(Share{settings.request().network, {}});
    for (std::size_t i = 0; i < at.compute.layers.size(); ++i)
      share->work.push_back(at.compute.layers[i].forward + at.compute.layers[i].backward +
                            at.compute.layout.behind_forward(i) +
                            at.compute.layout.ahead_of_backward(i));
    return *share;
  }

  [[nodiscard]] PredictionRequest request_of(const PredictionOptions& options) const {
    return {options,   job_.network,       job_.cluster,     job_.profile, job_.ranks,
            job_.wire, job_.stored_sample, job_.time_budget, {},           job_.sampling_seed};
  }

  [[nodiscard]] static std::vector<StageSums> sums(const Base& base) {
    const models::Layout& layout = base.options.layout;
    const models::Stages stages = models::stages_of(base.share->network, layout);
    std::vector<StageSums> sums(to_size(layout.pipeline));
    const models::Recomputation recomputation(base.share->network, base.options.recompute);
    for (std::size_t i = 0; i < base.share->work.size(); ++i) {
      const models::LayerWork& layer = base.share->network.layers[i];
      StageSums& stage = sums[to_size(stages.stage_of(static_cast<int>(i)))];
      stage.work += base.share->work[i];
      if (layout.pipeline > 1 && stages.chunk_of[i] < layout.pipeline)
        stage.first_chunk += base.share->work[i];
      stage.parameters += static_cast<double>(layer.parameter_elements());
      stage.kept += static_cast<double>(recomputation.kept(i));
    }
    return sums;
  }

  // No plan of the strategy takes less memory: states, and activations that are kept.
  [[nodiscard]] Bytes least_memory(const Base& base, const models::Strategy& strategy) const {
    const models::Layout& layout = base.options.layout;
    const auto ranks = static_cast<double>(job_.ranks) / layout.ranks_of_copy();
    const models::Sharded* sharded = strategy.sharded();
    const models::Sharding& sharding =
        models::sharding(sharded != nullptr ? sharded->kind : models::ShardingKind::none);
    const double shards =
        sharded != nullptr && sharded->in_groups
            ? std::min<double>(ranks, std::max(job_.cluster.ranks_per_node,
                                               job_.thresholds.group_size.value_or(1)))
            : ranks;
    const auto share = [&](models::TensorPlacement placement) {
      return placement == models::TensorPlacement::split ? 1 / shards : 1.0;
    };
    const double element = models::element_size(job_.precision).value();
    const bool is_mixed = models::has_masters(job_.precision);
    constexpr double fp32 = 4;
    const double states = least_kept_ + (is_mixed ? 1 : 0);
    const bool gathers = sharding.before_pass().has_value();
    const double weights =
        (gathers && is_mixed ? 0 : share(sharding.parameters) * element) +
        (layout.pipeline > 1 && !gathers ? 1 : share(sharding.gradients)) * element +
        share(sharding.states) * states * fp32 + (gathers && layout.pipeline > 1 ? element : 0);
    double most = 0;
    const std::vector<StageSums>& stages = base.stages;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const int in_flight =
          models::most_in_flight(layout, static_cast<int>(stage), base.options.accumulate);
      const double kept = base.options.batch_per_rank * element * stages[stage].kept *
                          std::max(1.0, static_cast<double>(in_flight) / layout.chunks);
      most = std::max(most, stages[stage].parameters * weights + kept);
    }
    return Bytes{most};
  }

  [[nodiscard]] bool is_worse_than_best(const Base& base) const {
    return best_ && base.least >= *best_;
  }

  void time_in_order() {
    for (const Base& base : bases_) {
      found_.least_left = base.least;
      if (is_worse_than_best(base)) {
        found_.is_proven = true;
        return;
      }
      if (best_ && request_.stop && request_.stop()) return;
      time(base);
    }
    found_.is_proven = true;
    if (best_) found_.least_left = *best_;
  }

  void time(const Base& base) {
    std::optional<Predictor> predictor;
    for (const models::Strategy* strategy : strategies_) {
      const int ranks = job_.ranks / base.options.layout.ranks_of_copy();
      const bool in_groups = strategy->sharded() != nullptr && strategy->sharded()->in_groups;
      const int nodes_ranks = std::max(1, job_.cluster.ranks_per_node / base.options.layout.tensor);
      if ((strategy->sharded() != nullptr && ranks == 1) || (in_groups && ranks <= nodes_ranks))
        continue;
      LayoutChoice choice{base.options, strategy, base.least, least_memory(base, *strategy)};
      choice.fits = choice.memory <= capacity_;
      if (!choice.fits && request_.fits_memory) {
        found_.too_large.push_back(std::move(choice));
        continue;
      }
      try {
        if (!predictor) predictor.emplace(request_of(base.options));
        const StrategyRun run = predictor->run(*strategy);
        choice.memory = device_memory(memory_request(job_.network, run.plan, base.options)).total();
        choice.fits = choice.memory <= capacity_;
        if (!choice.fits && request_.fits_memory) {
          found_.too_large.push_back(std::move(choice));
          continue;
        }
        choice.iteration = run.steady.period;
      } catch (const InputError&) {
        continue;  // groups that neither divide nodes nor are made of whole ones
      }
      best_ = std::min(best_.value_or(*choice.iteration), *choice.iteration);
      found_.timed.push_back(std::move(choice));
    }
  }

  [[noreturn]] void throw_too_large() const {
    const auto least = std::ranges::min_element(found_.too_large, {}, &LayoutChoice::memory);
    throw InputError(
        {"--ranks"},
        fmt::format("no layout of {} ranks fits the {:.0f} GB of a {}: the smallest needs {:.1f} "
                    "GB or more",
                    job_.ranks, capacity_.value() / 1e9, job_.cluster.device.name,
                    least == found_.too_large.end() ? 0.0 : least->memory.value() / 1e9),
        "choose more ranks, or --ignore-memory");
  }

  const LayoutSearchRequest& request_;
  const PredictionRequest& job_;
  Bytes capacity_;
  std::vector<const models::Strategy*> strategies_;
  double
      least_kept_;  // numbers that the optimizer keeps for each parameter of a layer, whatever the layer
  std::map<std::tuple<int, int, int, int, models::Recompute>, std::unique_ptr<Share>> shares_;
  std::vector<Base> bases_;
  FoundLayouts found_;
  std::optional<Seconds> best_;
};

}  // namespace

FoundLayouts search_layouts(const LayoutSearchRequest& request) {
  return Search(request).run();
}

}  // namespace paceline::simulator
