// Tests: tests/cli/layouts_test.py.
#include "cli/job/layout_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "models/base/parse_units.h"
#include "simulator/prediction/prediction_json.h"

namespace paceline::job {
namespace {

using simulator::LayoutChoice;

// A choice that a layout makes, in words: "tensor 8".
struct Dimension {
  std::string_view name;
  std::string (*value)(const LayoutChoice& choice);
};

const std::array<Dimension, 6>& dimensions() {
  static const std::array<Dimension, 6> all = {
      {{"tensor",
        [](const LayoutChoice& choice) {
          return fmt::format("tensor {}", choice.options.layout.tensor);
        }},
       {"expert",
        [](const LayoutChoice& choice) {
          return fmt::format("expert {}", choice.options.layout.expert);
        }},
       {"pipeline",
        [](const LayoutChoice& choice) {
          const models::Layout& layout = choice.options.layout;
          return fmt::format("pipeline {}{}", layout.pipeline,
                             layout.chunks > 1 ? fmt::format(" x {}", layout.chunks) : "");
        }},
       {"strategy", [](const LayoutChoice& choice) { return std::string(choice.strategy->name); }},
       {"batch",
        [](const LayoutChoice& choice) {
          return fmt::format("batch {}", choice.options.batch_per_rank);
        }},
       {"recompute", [](const LayoutChoice& choice) {
          return fmt::format("recompute {}", name(choice.options.recompute));
        }}}};
  return all;
}

// The best that differs from `best` in the dimension, whatever else differs with it.
template <class Choices>
const LayoutChoice* best_other(const Choices& choices, const LayoutChoice& best,
                               const Dimension& dimension) {
  const auto found = std::ranges::find_if(choices, [&](const LayoutChoice& choice) {
    return dimension.value(choice) != dimension.value(best);
  });
  return found == choices.end() ? nullptr : &*found;
}

// A layout without experts on ranks of their own has no word for them.
bool is_said(const Dimension& dimension, const LayoutChoice& choice) {
  return dimension.name != "expert" || choice.options.layout.expert > 1;
}

std::string all_words(const LayoutChoice& choice) {
  std::string text;
  for (const Dimension& dimension : dimensions())
    if (is_said(dimension, choice)) text += (text.empty() ? "" : ", ") + dimension.value(choice);
  return text;
}

std::vector<std::string> reasons(const simulator::FoundLayouts& found, Bytes capacity) {
  const LayoutChoice& best = found.timed.front();
  std::vector<std::string> why;
  for (const Dimension& dimension : dimensions()) {
    if (!is_said(dimension, best)) continue;
    std::string line = dimension.value(best) + ": ";
    if (const LayoutChoice* other = best_other(found.timed, best, dimension))
      line += fmt::format("the best with {} ({}) takes {:.1f} % longer", dimension.value(*other),
                          all_words(*other), 100 * (*other->iteration / *best.iteration - 1));
    else
      line += "no other can take less, by its lower bound";
    if (const LayoutChoice* other = best_other(found.too_large, best, dimension))
      line += fmt::format("; {} could be faster, and needs {} of {}", all_words(*other),
                          to_text(other->memory), to_text(capacity));
    why.push_back(std::move(line));
  }
  return why;
}

}  // namespace

LayoutTuning layout_tuning(const Job& job, int ranks, std::size_t most,
                           const std::function<bool()>& stop) {
  if (!job.question.global_batch)
    throw InputError({"--global-batch"}, "a search over layouts needs the samples of an iteration",
                     "give it, as in --global-batch 512");
  if (job.networks.size() > 1)
    throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()), "give one");
  LayoutTuning tuning{job, ranks, job.question.global_batch->count, {}, {}, {}};
  tuning.job.question.global_batch.reset();
  const simulator::PredictionRequest asked =
      tuning.job.request(tuning.job.networks.front(), ranks, job.wires.front());
  tuning.found = simulator::search_layouts({.job = asked,
                                            .global_batch = tuning.global_batch,
                                            .fits_memory = !job.question.ignore_memory,
                                            .stop = stop});
  Bytes least_memory{1e300};
  for (const LayoutChoice& choice : tuning.found.timed) {
    const bool is_on_front = choice.memory < least_memory;
    least_memory = std::min(least_memory, choice.memory);
    const std::size_t shown = tuning.rows.size();
    if (shown >= 2 * most || (shown >= most && !is_on_front)) continue;
    simulator::PredictionRequest request = asked;
    static_cast<simulator::PredictionOptions&>(request) = choice.options;
    tuning.rows.push_back(
        {choice, simulator::Predictor(request).predict(*choice.strategy), is_on_front});
  }
  tuning.why = reasons(tuning.found, job.cluster.device.memory.value);
  return tuning;
}

std::vector<LayoutRow> common_layouts(const Job& job, const LoadedNetwork& network, int ranks) {
  constexpr int most_stages = 16;
  const simulator::PredictionRequest asked = job.request(network, ranks, job.wires.front());
  std::vector<LayoutRow> rows;
  // Returns whether there is such a layout, and it fits.
  const auto add = [&](const models::Layout& layout, std::string_view strategy) {
    simulator::PredictionRequest request = asked;
    request.layout = layout;
    request.accumulate *= layout.ranks_of_sample();
    LayoutChoice choice{request, &models::strategy(strategy), {}, {}};
    try {
      LayoutRow row{choice, simulator::Predictor(request).predict(*choice.strategy)};
      row.choice.memory = row.prediction.memory.total();
      row.choice.fits = row.prediction.fits;
      rows.push_back(std::move(row));
    } catch (const InputError&) {
      return false;  // the network's heads or blocks, or the ranks, do not divide
    }
    return rows.back().choice.fits;
  };
  std::int64_t heads = 1;
  std::int64_t experts = 0;
  for (const models::LayerWork& layer : network.work.layers) {
    heads = std::max(heads, layer.heads);
    experts = std::max(experts, layer.experts);
  }
  // The most neighbours in a node that share this many of something.
  const auto sharing = [&](std::int64_t shared) {
    int of = std::min(ranks, job.cluster.ranks_per_node);
    while (of > 1 && (shared % of != 0 || ranks % of != 0)) --of;
    return of;
  };
  const bool has_experts = experts > 0;
  const int together = sharing(has_experts ? experts : heads);
  if (together == 1) return rows;
  const int of_copy = has_experts ? 1 : together;
  const models::Layout one{.tensor = of_copy, .expert = has_experts ? together : 1};
  if (ranks > of_copy) add(one, "fsdp");
  for (int stages = has_experts ? 1 : 2; stages <= most_stages && stages * together <= ranks;
       stages *= 2) {
    const std::size_t before = rows.size();
    models::Layout layout = one;
    layout.pipeline = stages;
    if (add(layout, "zero1")) break;
    // Where none fits, only the layout with the most stages is kept.
    const bool is_last = 2 * stages > most_stages || 2 * stages * together > ranks;
    if (!is_last) rows.resize(before);
  }
  std::ranges::stable_sort(rows, [](const LayoutRow& a, const LayoutRow& b) {
    return std::pair(!a.choice.fits, a.prediction.iteration.value) <
           std::pair(!b.choice.fits, b.prediction.iteration.value);
  });
  return rows;
}

const Document<LayoutRow>& layout_row_document() {
  static const auto row =
      Document<LayoutRow>()
          .add(
              "batch_per_rank", [](const LayoutRow& r) { return r.choice.options.batch_per_rank; },
              at_least(1))
          .add(
              "accumulate", [](const LayoutRow& r) { return r.choice.options.accumulate; },
              at_least(1))
          .add("recompute", [](const LayoutRow& r) { return name(r.choice.options.recompute); })
          .add(
              "least_s", [](const LayoutRow& r) { return r.choice.least; }, not_negative())
          .add("on_front", &LayoutRow::is_on_front)
          .add("prediction", &LayoutRow::prediction, simulator::prediction_document());
  return row;
}

const Document<LayoutTuning>& layouts_document() {
  using Tuning = LayoutTuning;
  static const auto document =
      Document<Tuning>("paceline.layouts/1",
                       "paceline tune --layouts --json: the best layouts of a job.")
          .add("model", [](const Tuning& t) { return t.job.networks.front().work.name; })
          .add("cluster", [](const Tuning& t) { return t.job.cluster.name; })
          .add("ranks", &Tuning::ranks, at_least(1))
          .add("global_batch", &Tuning::global_batch, at_least(1))
          .add(
              "candidates", [](const Tuning& t) { return t.found.candidates; }, at_least(1))
          .add(
              "timed", [](const Tuning& t) { return t.found.timed.size(); }, at_least(1))
          .add("is_proven", [](const Tuning& t) { return t.found.is_proven; })
          .add(
              "least_left_s", [](const Tuning& t) { return t.found.least_left; }, not_negative())
          .add("layouts", &Tuning::rows, layout_row_document(), 1)
          .add("why", &Tuning::why);
  return document;
}

}  // namespace paceline::job
