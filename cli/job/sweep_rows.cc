// Tests: tests/cli/sweep_test.py (end to end).
#include "cli/job/sweep_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "models/base/error.h"
#include "models/base/json.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "simulator/cost/device_memory.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/prediction/prediction.h"

namespace paceline::job {
namespace {

struct Row {
  std::optional<Seconds> iteration;
  std::optional<PerSecond> throughput;
  std::optional<Seconds> exposed;
  std::optional<std::size_t> buckets;
  std::optional<Bytes> memory;
  std::string engine;
  std::string status = "ok";
};

// The cells of one block.
class Block {
 public:
  Block(const Sweep& sweep, std::int64_t first_cell) : sweep_(sweep) {
    const SweepCell cell = cell_at(sweep, first_cell);
    std::size_t place = cell[to_size(SweepAxis::cluster)];
    for (const SweepAxis axis :
         {SweepAxis::profile, SweepAxis::bandwidth, SweepAxis::latency, SweepAxis::compute})
      place = place * sweep.size(axis) + cell[to_size(axis)];
    network_ = &sweep.networks[cell[to_size(SweepAxis::model)]];
    place_ = &sweep.places[place];
    ranks_ = sweep.ranks[cell[to_size(SweepAxis::ranks)]];
  }

  [[nodiscard]] Row row(const SweepCell& cell) {
    Row row;
    try {
      const simulator::Question question =
          simulator::with_batches(question_at(sweep_, cell), ranks_);
      if (!predictor_) predictor_.emplace(request(question));
      predict(question, row);
    } catch (const InputError& error) {
      row = {};
      row.status = error.problem();
    }
    return row;
  }

 private:
  // Of all cells of the block, which differ in strategy and thresholds.
  [[nodiscard]] simulator::PredictionRequest request(simulator::Question question) const {
    question.thresholds = {};
    const models::WireType wire =
        question.wires.empty() ? models::default_wire(question.precision) : question.wires.front();
    simulator::PredictionRequest request =
        simulator::request_for(question, network_->work, network_->stored_sample, place_->cluster,
                               place_->profile ? &*place_->profile : nullptr, ranks_, wire);
    request.time_budget = simulator::TimeBudget::bounded;
    return request;
  }

  void predict(const simulator::Question& question, Row& row) {
    predictor_->take(question.thresholds);
    const simulator::StrategyRun run = predictor_->run(*question.strategies.named.front());
    row.buckets = run.plan.buckets.size();
    const Bytes memory =
        simulator::device_memory(simulator::memory_request(network_->work, run.plan, question))
            .total();
    row.memory = memory;
    row.engine = simulator::name(run.method.engine);
    const models::Device& device = place_->cluster.device;
    if (memory > device.memory.value) {
      row.status = fmt::format("out of memory: a rank needs {} of {}", to_text(memory),
                               to_text(device.memory.value));
      return;
    }
    const Seconds period = run.steady.period;
    row.iteration = period;
    row.exposed = time_spent(run.dag, run.steady).exposed_communication;
    row.throughput = question.samples(ranks_) / period;
    if (!run.steady.converged) row.status = "no steady state: the time is that of the slowest task";
  }

  const Sweep& sweep_;
  const LoadedNetwork* network_ = nullptr;
  const SweepPlace* place_ = nullptr;
  int ranks_ = 1;
  std::optional<simulator::Predictor> predictor_;
};

// A field of a CSV (RFC 4180).
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

template <class Q>
std::string number(const std::optional<Q>& value) {
  return value ? fmt::format("{}", value->value()) : std::string();
}

void add_csv(const Sweep& sweep, std::int64_t number_of_cell, const SweepCell& cell, const Row& row,
             std::string& text) {
  text += std::to_string(number_of_cell);
  for (std::size_t axis = 0; axis < sweep_axis_count; ++axis)
    text += ',' + field(sweep.axes[axis][cell[axis]]);
  text += fmt::format(",{},{},{},{},{},{},{}\n", number(row.iteration), number(row.throughput),
                      number(row.exposed), row.buckets ? std::to_string(*row.buckets) : "",
                      number(row.memory), row.engine, field(row.status));
}

template <class Q>
Json json_of(const std::optional<Q>& value) {
  return value ? Json(value->value()) : Json();
}

void add_json(const Sweep& sweep, std::int64_t number_of_cell, const SweepCell& cell,
              const Row& row, std::string& text) {
  Json json = {{"cell", number_of_cell}};
  for (std::size_t axis = 0; axis < sweep_axis_count; ++axis)
    json[name(static_cast<SweepAxis>(axis))] = sweep.axes[axis][cell[axis]];
  json["iteration_s"] = json_of(row.iteration);
  json["throughput_per_s"] = json_of(row.throughput);
  json["exposed_communication_s"] = json_of(row.exposed);
  json["buckets"] = row.buckets ? Json(static_cast<std::int64_t>(*row.buckets)) : Json();
  json["memory_bytes"] = json_of(row.memory);
  json["engine"] = row.engine.empty() ? Json() : Json(row.engine);
  json["status"] = row.status;
  text += json.in_one_line() + '\n';
}

}  // namespace

SweepBlocks::SweepBlocks(const Sweep& sweep)
    : inner_(sweep.inner_cells()),
      per_inner_((inner_ + most_block_cells - 1) / most_block_cells),
      count_(sweep.cells() / inner_ * per_inner_) {}

std::int64_t SweepBlocks::first_cell(std::int64_t block) const {
  return block / per_inner_ * inner_ + block % per_inner_ * most_block_cells;
}

std::int64_t SweepBlocks::block_at(std::int64_t cell) const {
  const std::int64_t inside = cell % inner_;
  if (inside % most_block_cells != 0) return -1;
  return cell / inner_ * per_inner_ + inside / most_block_cells;
}

std::string sweep_header(SweepFormat format) {
  if (format == SweepFormat::json_lines) return "";
  std::string text = "cell";
  for (std::size_t axis = 0; axis < sweep_axis_count; ++axis)
    text += fmt::format(",{}", name(static_cast<SweepAxis>(axis)));
  return text +
         ",iteration_s,throughput_per_s,exposed_communication_s,buckets,memory_bytes,"
         "engine,status\n";
}

std::string sweep_rows(const Sweep& sweep, const SweepBlocks& blocks, std::int64_t block,
                       SweepFormat format) {
  const std::int64_t first = blocks.first_cell(block);
  const std::int64_t end = blocks.first_cell(block + 1);
  Block cells(sweep, first);
  std::string text;
  for (std::int64_t number = first; number < end; ++number) {
    const SweepCell cell = cell_at(sweep, number);
    const Row row = cells.row(cell);
    (format == SweepFormat::csv ? add_csv : add_json)(sweep, number, cell, row, text);
  }
  return text;
}

}  // namespace paceline::job
