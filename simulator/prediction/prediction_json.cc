// Tests: tests/cli/predict_test.py, tests/cli/schemas_test.py, tests/golden.
#include "simulator/prediction/prediction_json.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "models/base/names.h"

namespace paceline::simulator {
namespace {

using Row = StrategyPrediction;

template <class T>
std::optional<T> only_if(bool is_there, T value) {
  return is_there ? std::optional<T>(std::move(value)) : std::nullopt;
}

// A threshold of the strategies that take it, of which `get` has the value.
template <class Get>
auto threshold(bool (*is_taken)(const models::Strategy& strategy), Get get) {
  return [is_taken, get](const Row& row) {
    return only_if(is_taken(models::strategy(row.name)), std::invoke(get, *row.thresholds));
  };
}

// A threshold that is left out where it says nothing.
template <class Get>
auto dispatched(Get get) {
  return [get](const Row& row) { return get(*row.thresholds); };
}

const Document<Row>& thresholds_document() {
  using models::Strategy;
  using models::Thresholds;
  static const auto all_at_once = [](const Strategy& s) { return s.traits().all_at_once; };
  static const auto machines = [](const Strategy& s) { return s.traits().takes_machines; };
  static const auto factors = [](const Strategy& s) { return s.traits().takes_factors; };
  static const auto document =
      Document<Row>()
          .add_if_any("theta_bytes", threshold([](const Strategy& s) { return s.takes_fusion(); },
                                               &Thresholds::fusion))
          .add_if_any("eta_bytes", threshold([](const Strategy& s) { return s.takes_hybrid(); },
                                             &Thresholds::hybrid))
          .add_if_any(
              "group",
              threshold([](const Strategy& s) { return s.takes_group(); }, &Thresholds::group_size),
              at_least(1))
          .add_if_any("reshard_after_forward", threshold(
                                                   [](const Strategy& s) {
                                                     return s.sharded() != nullptr &&
                                                            s.sharded()->gathers();
                                                   },
                                                   &Thresholds::reshard))
          .add_if_any("segments",
                      threshold([](const Strategy& s) { return s.takes_segments(); },
                                &Thresholds::segments),
                      at_least(1))
          .add_if_any(
              "rings",
              [](const Row& row) {
                return only_if(
                    models::strategy(row.name).takes_rings() && row.thresholds->rings > 0,
                    row.thresholds->rings);
              },
              at_least(1))
          .add_if_any("servers", threshold(all_at_once, &Thresholds::servers), at_least(1))
          .add_if_any("placement", threshold(all_at_once, &Thresholds::placement))
          .add_if_any("factors_every", threshold(factors, &Thresholds::factors_every), at_least(1))
          .add_if_any("placement", threshold(factors, &Thresholds::placement))
          .add_if_any(
              "streams",
              [](const Row& row) {
                const int streams = row.thresholds->streams;
                return only_if(!all_at_once(models::strategy(row.name)) && streams > 1, streams);
              },
              at_least(1))
          .add_if_any("cycle_s", dispatched([](const Thresholds& thresholds) {
                        const Seconds cycle = thresholds.dispatch.cycle;
                        return only_if(cycle > Seconds{0}, cycle);
                      }))
          .add_if_any("negotiation", dispatched([](const Thresholds& thresholds) {
                        const models::Negotiation negotiation = thresholds.dispatch.negotiation;
                        return only_if(negotiation != models::Negotiation::none, negotiation);
                      }))
          .add_if_any("partition_bytes", dispatched([](const Thresholds& thresholds) {
                        return only_if(thresholds.partition > Bytes{0}, thresholds.partition);
                      }))
          .add_if_any("credit_bytes",
                      [](const Row& row) { return row.thresholds->dispatch.credit; })
          .add_if_any(
              "host_copies",
              [](const Row& row) { return only_if(row.thresholds->dispatch.through_host, true); },
              always(true))
          .add_if_any("servers", threshold(machines, &Thresholds::servers), at_least(1))
          .add_if_any("own_machines", threshold(machines, &Thresholds::own_machines))
          .add_if_any("transport", threshold(machines, &Thresholds::transport))
          .add_if_any(
              "alike_groups",
              [](const Row& row) { return only_if(!row.alike_groups.empty(), row.alike_groups); })
          .add_if_any("alike_segments", [](const Row& row) {
            return only_if(!row.alike_segments.empty(), row.alike_segments);
          });
  return document;
}

// "forward_s", "all_reduce_s": the kinds of task that are on the path.
const Document<Row>& critical_path_document() {
  static const auto document = [] {
    Document<Row> kinds;
    for (int i = 0; i <= static_cast<int>(TaskKind::update); ++i) {
      const auto kind = static_cast<TaskKind>(i);
      std::string key(name(kind));
      std::ranges::replace_if(
          key, [](char c) { return c == '-' || c == ' '; }, '_');
      std::ranges::transform(key, key.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      kinds.add_if_any(key + "_s", [kind](const Row& row) {
        const auto share = std::ranges::find(row.critical_path, kind, &PathShare::kind);
        return share == row.critical_path.end() ? std::nullopt : std::optional(share->time);
      });
    }
    return kinds;
  }();
  return document;
}

const Document<PackedCollective>& collective_document() {
  static const auto document = Document<PackedCollective>()
                                   .add("bytes", &PackedCollective::bytes)
                                   .add("most_sent_bytes", &PackedCollective::most_sent)
                                   .add("pack_s", &PackedCollective::pack)
                                   .add("transfer_s", &PackedCollective::transfer)
                                   .add("unpack_s", &PackedCollective::unpack);
  return document;
}

Seconds sum_over_layers(const KfacTimes& times, Seconds OwnedLayer::*part) {
  Seconds sum;
  for (const OwnedLayer& layer : times.owned) sum += layer.*part;
  return sum;
}

// The stages of K-FAC. Times are means over the iterations between two refreshes of the factors.
const Document<KfacTimes>& k_fac_document() {
  static const auto document =
      Document<KfacTimes>()
          .add("owners", &KfacTimes::owners, at_least(1))
          .add("factors_s", &KfacTimes::factors_total)
          .add("invert_s",
               [](const KfacTimes& times) { return sum_over_layers(times, &OwnedLayer::invert); })
          .add("precondition_s",
               [](const KfacTimes& times) {
                 return sum_over_layers(times, &OwnedLayer::precondition);
               })
          .add("reduce_scatter_beside_backward", &KfacTimes::inputs, collective_document())
          .add("reduce_scatter", &KfacTimes::reduced, collective_document())
          .add("all_gather", &KfacTimes::gathered, collective_document());
  return document;
}

const Document<DeviceMemory>& memory_document() {
  static const auto document =
      Document<DeviceMemory>()
          .add("parameters_bytes", &DeviceMemory::parameters)
          .add("masters_bytes", &DeviceMemory::masters)
          .add("gradients_bytes", &DeviceMemory::gradients)
          .add("optimizer_bytes", &DeviceMemory::optimizer)
          .add("activations_bytes", &DeviceMemory::activations)
          .add("input_bytes", &DeviceMemory::input)
          .add("workspace_bytes", &DeviceMemory::workspace)
          .add("buffers_bytes", &DeviceMemory::buffers)
          .add_if_any("on_host_bytes",
                      [](const DeviceMemory& memory) {
                        return only_if(memory.on_host > Bytes{0}, memory.on_host);
                      })
          .add_if_any("factors_bytes",
                      [](const DeviceMemory& memory) {
                        return only_if(memory.factors > Bytes{0}, memory.factors);
                      })
          .add("total_bytes", &DeviceMemory::total);
  return document;
}

const Document<Utilization>& utilization_document() {
  static const auto document =
      Document<Utilization>()
          .add("tokens_per_s", &Utilization::tokens, positive())
          .add("tokens_per_s_per_rank", &Utilization::tokens_of_rank, positive())
          .add("mfu", &Utilization::mfu, not_negative())
          .add("mfu_full_square", &Utilization::mfu_full_square, not_negative())
          .add("hfu", &Utilization::hfu, not_negative());
  return document;
}

const Document<StragglerPrediction>& straggler_document() {
  using Line = StragglerPrediction;
  static const auto document =
      Document<Line>()
          .add(
              "iteration_mean_s", [](const Line& line) { return line.iteration.mean; }, positive())
          .add("iteration_stderr_s", [](const Line& line) { return line.iteration.standard_error; })
          .add_interval(
              "iteration_p50", "s", [](const Line& line) { return line.iteration.p50; }, positive())
          .add_interval(
              "iteration_p99", "s", [](const Line& line) { return line.iteration.p99; }, positive())
          .add("throughput_mean_per_s", &Line::throughput, positive())
          .add("counted_ranks", &Line::counted_ranks, at_least(1))
          .add("efficiency_mean", &Line::efficiency, not_negative());
  return document;
}

bool has_layout(const Row& row) {
  return row.plan.layout != models::Layout{};
}

const Document<Row>& layout_document() {
  static const auto document =
      Document<Row>()
          .add(
              "tensor", [](const Row& row) { return row.plan.layout.tensor; }, at_least(1))
          .add("sequence_parallel",
               [](const Row& row) { return row.plan.layout.sequence_parallel; })
          .add("tensor_overlap", [](const Row& row) { return row.plan.layout.tensor_overlap; })
          .add(
              "context", [](const Row& row) { return row.plan.layout.context; }, at_least(1))
          .add(
              "expert", [](const Row& row) { return row.plan.layout.expert; }, at_least(1))
          .add("tokens_once", [](const Row& row) { return row.plan.layout.tokens_once; })
          .add(
              "pipeline", [](const Row& row) { return row.plan.layout.pipeline; }, at_least(1))
          .add(
              "chunks", [](const Row& row) { return row.plan.layout.chunks; }, at_least(1))
          .add("schedule",
               [](const Row& row) {
                 return std::string(name_in(models::pipeline_schedules, row.plan.layout.schedule));
               })
          .add(
              "data", [](const Row& row) { return row.plan.ranks / row.plan.layout.context; },
              at_least(1))
          .add("exposed_exchange_s", [](const Row& row) { return row.spent.exchange; })
          .add("bubble_s", [](const Row& row) { return row.spent.bubble; });
  return document;
}

}  // namespace

const Document<StrategyPrediction>& prediction_document() {
  static const auto document =
      Document<Row>()
          .add("name", &Row::name)
          .add_interval("iteration", "s", &Row::iteration, positive())
          .add("throughput_per_s", &Row::throughput, positive())
          .add_if_any("utilization", &Row::utilization, utilization_document())
          .add("efficiency", &Row::efficiency, not_negative())
          .add("efficiency_baseline_ranks", &Row::baseline_ranks, at_least(1))
          .add("compute_s", [](const Row& row) { return row.spent.compute; })
          .add("update_s", [](const Row& row) { return row.spent.update; })
          .add("exposed_communication_s",
               [](const Row& row) { return row.spent.exposed_communication; })
          .add("input_wait_s", [](const Row& row) { return row.spent.input_wait; })
          .add("communication_s", [](const Row& row) { return row.spent.communication; })
          .add_if_any(
              "layout", [](const Row& row) { return has_layout(row) ? &row : nullptr; },
              layout_document())
          .add("critical_path", std::identity(), critical_path_document())
          .add(
              "buckets", [](const Row& row) { return row.plan.buckets.size(); }, at_least(1))
          .add("wire_type", [](const Row& row) { return row.plan.wire; })
          .add("overlap", [](const Row& row) { return row.plan.overlap; })
          .add(
              "thresholds", [](const Row& row) { return row.thresholds ? &row : nullptr; },
              thresholds_document())
          .add("memory", &Row::memory, memory_document())
          .add("fits_memory", &Row::fits)
          .add("largest_batch_per_rank", &Row::largest_batch)
          .add("steady", &Row::converged)
          .add_constant("provenance", "predicted")
          .add("timed_by", &Row::timed_by)
          .add("messages_not_followed", &Row::not_followed, not_negative())
          .add("better_links_may_slow",
               [](const Row& row) {
                 return only_if(!row.better_links_may_slow.empty(), row.better_links_may_slow);
               })
          .add("compute_source", &Row::compute_source)
          .add_if_any("k_fac", &Row::k_fac, k_fac_document())
          .include(&Row::stragglers, straggler_document());
  return document;
}

}  // namespace paceline::simulator
