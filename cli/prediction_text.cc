// Tests: tests/cli (end to end), tests/golden.
#include "cli/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/basis.h"
#include "cli/layout_text.h"
#include "cli/output.h"
#include "cli/prediction_notes.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::cli {
namespace {

std::string thresholds_text(const models::Strategy& strategy,
                            const models::Thresholds& thresholds) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (thresholds.partition == Bytes{0} &&
      (strategy.fusion == models::Fusion::by_default || thresholds.fusion > Bytes{0}))
    add("theta " + to_text_binary(thresholds.fusion));
  if (strategy.takes_hybrid()) add("eta " + to_text(thresholds.hybrid));
  if (strategy.takes_group()) add(fmt::format("k {}", thresholds.group_size));
  if (!thresholds.reshard) add("gathered until the backward pass");
  if (strategy.takes_segments()) add(fmt::format("{} segments", thresholds.segments));
  if (strategy.takes_rings() && thresholds.rings > 0)
    add(fmt::format("{} rings", thresholds.rings));
  if (strategy.traits().all_at_once)
    add(fmt::format("{} servers, {}", thresholds.servers, name(thresholds.placement)));
  if (strategy.traits().takes_factors)
    add(fmt::format("owners {}, factors every {}", name(thresholds.placement),
                    thresholds.factors_every));
  if (!strategy.traits().all_at_once && thresholds.streams > 1)
    add(fmt::format("{} streams", thresholds.streams));
  const models::Dispatch& dispatch = thresholds.dispatch;
  if (dispatch.cycle > Seconds{0}) add("cycle " + to_text(dispatch.cycle));
  if (thresholds.partition > Bytes{0}) add("partition " + to_text(thresholds.partition));
  if (dispatch.credit) add("credit " + to_text(*dispatch.credit));
  if (dispatch.through_host) add("host copies");
  if (strategy.traits().takes_machines)
    add(fmt::format("{} servers{}, {}", thresholds.servers,
                    thresholds.own_machines ? " of their own" : "", name(thresholds.transport)));
  return text;
}

// The thresholds of a row; those of a plan that the user gave are not known.
std::string plan_text(const simulator::StrategyPrediction& row) {
  return row.thresholds ? thresholds_text(models::strategy(row.name), *row.thresholds)
                        : "of the plan";
}

// "a", "a and b", "a, b and c".
std::string list_text(std::span<const std::string> parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// Other k or segments that are no worse: "; within 0.1 % also with k 8 and 32".
std::string alike_text(const simulator::StrategyPrediction& row) {
  const bool groups = !row.alike_groups.empty();
  const std::vector<int>& alike = groups ? row.alike_groups : row.alike_segments;
  if (alike.empty()) return "";
  std::vector<std::string> numbers;
  for (const int number : alike) numbers.push_back(std::to_string(number));
  return groups ? fmt::format("; within 0.1 % also with k {}", list_text(numbers))
                : fmt::format("; within 0.1 % also with {} segments", list_text(numbers));
}

std::string assignments_text(const std::map<int, double>& values) {
  std::string text;
  for (const auto& [index, value] : values)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", index, value);
  return text;
}

// How ranks differ, and what the columns are that follow from it.
std::string straggler_note(const job::PredictionTable& table) {
  if (!table.job.stragglers) return "";
  const simulator::MonteCarloRequest& request = *table.job.stragglers;
  const models::Stragglers& stragglers = request.stragglers;
  std::string text =
      fmt::format("mean, p50, p99: {} simulated iterations (seed {}), compute times {}",
                  request.iterations, request.seed, stragglers.spread.text);
  if (!stragglers.spread.samples.empty())
    text += fmt::format(" ({} samples)", stragglers.spread.samples.size());
  if (!stragglers.slow_ranks.empty())
    text += fmt::format(", slow ranks {}", assignments_text(stragglers.slow_ranks));
  text += "; all other columns are without them\n";
  if (!table.job.cluster.slow_nodes.empty())
    text += fmt::format("slow nodes, in every column: {} of the NICs' bandwidth\n",
                        assignments_text(table.job.cluster.slow_nodes));
  const int counted = table.ranks - stragglers.backup;
  if (stragglers.backup > 0)
    text += fmt::format(
        "backup workers: an update waits for the first {} of {} gradients; all-reduces run over "
        "all {} ranks\n",
        counted, table.ranks, table.ranks);
  return text + fmt::format("mean throughput: {} samples in the mean iteration\n",
                            static_cast<std::int64_t>(counted) * table.job.question.batch_per_rank *
                                table.job.question.accumulate);
}

// The thresholds that the user gave, with their values.
std::string given_thresholds(const simulator::ThresholdRequest& given) {
  std::vector<std::string> parts;
  for (const simulator::ThresholdField* field : simulator::given_fields(given))
    parts.push_back(field->words(given));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// What the planner chose, and which rows have a bucket for each tensor, because their definition says so.
std::string thresholds_note(const job::PredictionTable& table) {
  if (table.job.plan) return fmt::format("plan: {} (--plan)\n", table.job.plan_file);
  const simulator::ThresholdRequest& given = table.job.question.thresholds;
  bool has_theta = false;
  bool has_eta = false;
  bool has_k = false;
  std::vector<std::string> by_tensor;
  std::vector<std::string> may_fuse;
  for (const simulator::StrategyPrediction& row : table.rows) {
    const models::Strategy& strategy = models::strategy(row.name);
    const models::Hybrid* hybrid = strategy.hybrid();
    if (strategy.other || (strategy.sharded() != nullptr && strategy.sharded()->gathers()))
      continue;
    has_theta = has_theta || (strategy.fusion == models::Fusion::by_default && !given.fusion);
    has_eta = has_eta || (hybrid != nullptr && hybrid->threshold == Bytes{0} && !given.hybrid);
    has_k = has_k || (strategy.takes_group() && !given.group_size);
    const bool is_fixed = !strategy.takes_fusion();
    if (!is_fixed && (strategy.fusion == models::Fusion::by_default || given.fusion)) continue;
    if (std::find(by_tensor.begin(), by_tensor.end(), row.name) != by_tensor.end()) continue;
    by_tensor.push_back(row.name);
    if (!is_fixed) may_fuse.push_back(row.name);
  }
  std::vector<std::string> chosen;
  std::vector<std::string> options;
  const auto add = [&](bool is_chosen, const char* name, const char* option) {
    if (!is_chosen) return;
    chosen.emplace_back(name);
    options.emplace_back(option);
  };
  add(has_theta, "theta", "--theta");
  add(has_eta, "eta", "--eta");
  add(has_k, "k", "--group");
  std::string text;
  if (const std::string named = given_thresholds(given); !named.empty())
    text += fmt::format("thresholds: {} given{}\n", named,
                        chosen.empty() ? "" : "; the others chosen by the planner");
  else if (!chosen.empty())
    text += fmt::format("{}: chosen by the planner ({} set{} {})\n", fmt::join(chosen, ", "),
                        list_text(options), options.size() == 1 ? "s" : "",
                        options.size() == 1 ? "it" : "them");
  if (!by_tensor.empty())
    text += fmt::format(
        "one bucket for each tensor, by definition: {}{}\n", fmt::join(by_tensor, ", "),
        may_fuse.empty() ? "" : fmt::format(" (--theta fuses tensors of {})", list_text(may_fuse)));
  return text;
}

// A line for each threshold that some of the strategies take and others do not.
std::string partly_taken_text(const job::Job& job) {
  std::string text;
  for (const simulator::PartlyTaken& part :
       simulator::partly_taken(job.question.thresholds, job.strategies)) {
    const bool takers_are_few = part.taken_by.size() <= part.left_aside_by.size();
    text += fmt::format("{}: {} {}\n", part.field->option(),
                        takers_are_few ? "taken by" : "not taken by",
                        fmt::join(takers_are_few ? part.taken_by : part.left_aside_by, ", "));
  }
  return text;
}

// What times the all-reduces of a row, in two words at most.
std::string engine_text(const simulator::StrategyPrediction& row) {
  if (models::strategy(row.name).traits().takes_machines) return "closed form";
  if (row.by_library_model) return "own model";
  return row.plan.uses<models::Library>() == nullptr ? std::string(name(row.engine)) : "own curve";
}

// "313.4 - 315.6 ms", or "985 us - 1.2 ms".
std::string interval_text(const simulator::StrategyPrediction& row) {
  const std::string low = to_text(row.iteration.low);
  const std::string high = to_text(row.iteration.high);
  const std::size_t unit = low.find(' ');
  const bool is_one_unit = unit != std::string::npos && high.ends_with(low.substr(unit));
  return fmt::format("{} - {}", is_one_unit ? low.substr(0, unit) : low, high);
}

// A number with a prefix of SI: "538 k".
std::string count_text(double count) {
  if (count >= 1e6) return fmt::format("{:.4g} M", count / 1e6);
  return count >= 1e3 ? fmt::format("{:.4g} k", count / 1e3) : fmt::format("{:.4g}", count);
}

// Tokens per second where the network reads sequences, else samples per second.
std::string throughput_text(const simulator::StrategyPrediction& row) {
  return row.utilization ? count_text(row.utilization->tokens.value()) + " tokens/s"
                         : to_text(row.throughput);
}

std::vector<Table::Column> table_columns(bool has_stragglers) {
  std::vector<Table::Column> columns = {{.title = "  strategy", .align = Align::left},
                                        {.title = "wire", .align = Align::left},
                                        {.title = "iteration"},
                                        {.title = "interval", .least_important = 1}};
  if (has_stragglers) {
    columns.insert(columns.end(), {{.title = "mean ± stderr"},
                                   {.title = "p50", .least_important = 7},
                                   {.title = "p99", .least_important = 2},
                                   {.title = "mean throughput", .least_important = 3}});
  }
  columns.insert(columns.end(),
                 {{.title = "throughput", .least_important = has_stragglers ? 4 : 0},
                  {.title = "efficiency"},
                  {.title = "exposed", .least_important = 2},
                  {.title = "comm.", .least_important = 8},
                  {.title = "buckets", .least_important = 9},
                  {.title = "engine", .align = Align::left, .least_important = 6},
                  {.title = "thresholds", .align = Align::left, .least_important = 5}});
  return columns;
}

Table table_of(const job::Job& job, std::span<const simulator::StrategyPrediction> rows,
               std::optional<std::size_t> best) {
  Table table(table_columns(job.stragglers.has_value()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const simulator::StrategyPrediction& row = rows[i];
    std::vector<std::string> cells = {(i == best ? "* " : "  ") + row.name,
                                      std::string(name(row.plan.wire)),
                                      to_text(row.iteration.value), interval_text(row)};
    if (row.stragglers) {
      const simulator::IterationSummary& simulated = row.stragglers->iteration;
      cells.insert(cells.end(), {fmt::format("{} ± {}", to_text(simulated.mean),
                                             to_text(simulated.standard_error)),
                                 to_text(simulated.p50.value), to_text(simulated.p99.value),
                                 to_text(row.stragglers->throughput)});
    }
    cells.insert(cells.end(),
                 {throughput_text(row),
                  percent(row.stragglers ? row.stragglers->efficiency : row.efficiency),
                  to_text(row.spent.exposed_communication), to_text(row.spent.communication),
                  fmt::format("{}", row.plan.buckets.size()), engine_text(row), plan_text(row)});
    table.add(std::move(cells));
  }
  return table;
}

std::string title_text(const job::Job& job, const job::LoadedNetwork& network, int ranks) {
  const int g = job.cluster.ranks_per_node;
  const int nodes = (ranks + g - 1) / g;
  const models::Layout& layout = job.question.layout;
  const bool is_mesh = layout != models::Layout{};
  const std::string sequence =
      network.work.sequence > 0 ? fmt::format(" of {} tokens", network.work.sequence) : "";
  return fmt::format("{} on {}: {} rank{} ({} node{} of {} {}), batch {}{} {}, {} precision\n{}\n",
                     network.work.name, job.cluster.name, ranks, ranks == 1 ? "" : "s", nodes,
                     nodes == 1 ? "" : "s", g, job.cluster.device.name, job.question.batch_per_rank,
                     sequence + (job.question.accumulate > 1
                                     ? fmt::format(" x {} accumulated", job.question.accumulate)
                                     : ""),
                     per_ranks(layout), name(job.question.precision),
                     is_mesh ? "layout: " + described(layout, ranks) + "\n" : "");
}

Table top_table(const job::PredictionTable& table, std::size_t top) {
  Table rows = table_of(table.job, table.rows, table.best());
  rows.keep_rows(top_of(top, iterations_of(table), table.best()));
  return rows;
}

// Where the iteration of the fastest row goes, and what its plan is.
std::string winner_text(const job::PredictionTable& table) {
  const simulator::StrategyPrediction& winner = table.rows[table.best()];
  const auto share = [&](Seconds part) { return percent(part / winner.iteration.value); };
  std::string text = fmt::format(
      "\n* the shortest iteration{}: compute {} (update {}), exposed communication {}, waiting for "
      "input {}\n",
      table.job.stragglers ? " in the mean; without stragglers" : "", share(winner.spent.compute),
      share(winner.spent.update), share(winner.spent.exposed_communication),
      share(winner.spent.input_wait));
  if (winner.plan.layout != models::Layout{})
    text += fmt::format(
        "  of what is exposed, ranks of a sample exchange {}, stages wait for each other {}, and "
        "data parallelism has {}\n",
        share(winner.spent.exchange), share(winner.spent.bubble),
        share(winner.spent.exposed_communication - winner.spent.exchange - winner.spent.bubble));
  std::string path;
  for (const simulator::PathShare& part : winner.critical_path) {
    path += fmt::format("{}{} {}", path.empty() ? "" : ", ", name(part.kind), share(part.time));
  }
  text += fmt::format("  its critical path: {}\n", path);
  if (const auto& use = winner.utilization)
    text += fmt::format(
        "  {} tokens/s, {} of each rank; MFU {} ({} with all of attention's square), HFU {}\n",
        count_text(use->tokens.value()), count_text(use->tokens_of_rank.value()), percent(use->mfu),
        percent(use->mfu_full_square), percent(use->hfu));
  const std::string thresholds = plan_text(winner);
  std::string tied;
  for (const std::size_t i : table.tied()) {
    const simulator::StrategyPrediction& row = table.rows[i];
    tied += (tied.empty() ? "" : ", ") + row.name;
    if (table.job.wires.size() > 1) tied += fmt::format(" {}", name(row.plan.wire));
  }
  if (!tied.empty()) text += fmt::format("  within 0.1 %, and so no worse: {}\n", tied);
  const std::size_t buckets = winner.plan.buckets.size();
  return text + fmt::format("  its plan: {} bucket{}{}{}{}\n", buckets, buckets == 1 ? "" : "s",
                            thresholds.empty() ? "" : ", ", thresholds, alike_text(winner));
}

// Layouts of several axes that people would try beside the rows of the table.
std::string layouts_text(const job::PredictionTable& table, int width) {
  if (table.layouts.empty()) return "";
  const bool fits = table.layouts.front().choice.fits;
  return fmt::format(
      "\nlayouts of several axes, with as many samples an iteration{}\n{}  paceline tune --layouts "
      "--global-batch {:.0f} searches all of them\n",
      fits ? "" : " (none of these fits)",
      layout_table(table.layouts, table.ranks, false).fitted(width).text,
      table.job.question.samples(table.ranks));
}

// What the starred row would gain by a better cluster, each part by itself.
std::string sensitivity_text(const job::PredictionTable& table) {
  if (table.better.empty()) return "";
  const simulator::StrategyPrediction& row = table.rows[table.best()];
  Table rows({{"  what would help", Align::left},
              {"10 % better", Align::right},
              {"twice as good", Align::right},
              {"with the plan as it is", Align::right}});
  const auto gain = [&](Seconds time) { return percent(1 - time / row.iteration.value); };
  for (std::size_t i = 0; i + 1 < table.better.size(); i += 2) {
    const simulator::BetterPart& little = table.better[i];
    const simulator::BetterPart& twice = table.better[i + 1];
    rows.add({fmt::format("  {}", name(little.part)), gain(little.least()), gain(twice.least()),
              gain(twice.iteration)});
  }
  return fmt::format(
      "\n{}  by how much the iteration of {} would be shorter; its plan {}; predicted\n\n",
      rows.text(), row.name, table.job.plan ? "stays" : "is chosen anew");
}

// What the starred row needs of its device's memory, part by part, and the largest batch that fits.
std::string memory_text(const job::PredictionTable& table) {
  if (table.job.question.compute_is_exact) return "";
  const simulator::StrategyPrediction& row = table.rows[table.best()];
  const simulator::DeviceMemory& memory = row.memory;
  std::string parts;
  const auto add = [&](const char* what, Bytes bytes) {
    if (bytes > Bytes{0})
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", what, to_text(bytes));
  };
  add("activations", memory.activations);
  add("workspace", memory.workspace);
  add("input", memory.input);
  add("parameters", memory.parameters);
  add("masters", memory.masters);
  add("gradients", memory.gradients);
  add("optimizer", memory.optimizer);
  add("buffers", memory.buffers);
  add("factors", memory.factors);
  if (memory.on_host > Bytes{0}) parts += fmt::format("; on the host {}", to_text(memory.on_host));
  return fmt::format(
      "memory of a rank: {} of {}{} ({})\n  {}\n", to_text(memory.total()),
      to_text(table.job.cluster.device.memory.value), row.fits ? "" : ": IT DOES NOT FIT",
      row.largest_batch > 0 ? fmt::format("the largest batch that fits is {}", row.largest_batch)
                            : "not even a batch of 1 fits",
      parts);
}

}  // namespace

std::string per_ranks(const models::Layout& layout) {
  return layout.ranks_of_sample() == 1
             ? std::string("per rank")
             : fmt::format("per group of {} ranks", layout.ranks_of_sample());
}

std::string k_fac_note(const job::PredictionTable& table) {
  std::string text;
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (!row.k_fac) continue;
    const simulator::KfacTimes& times = *row.k_fac;
    Seconds inverted;
    for (const simulator::OwnedLayer& layer : times.owned) inverted += layer.invert;
    text += fmt::format("k-fac: factors {}, inverses {} on the longest of {} owner{}",
                        to_text(times.factors_total()), to_text(inverted), times.owners,
                        times.owners == 1 ? "" : "s");
    if (table.ranks > 1)
      text += fmt::format("; {} reduced and {} gathered on the wire",
                          to_text(times.inputs.bytes + times.reduced.bytes),
                          to_text(times.gathered.bytes));
    const models::KfacUse& use = *row.plan.uses<models::KfacUse>();
    if (use.factors_every > 1)
      text += fmt::format("; times are means of {} iterations, one of which has factors",
                          use.factors_every);
    text += "\n";
  }
  return text;
}

std::string setting_text(const job::Job& job) {
  std::string text;
  if (!job.question.nic.empty())
    text += fmt::format("NIC: {} in place of the cluster's own (--nic)\n", job.question.nic);
  if (job.question.recompute != models::Recompute::none)
    text += fmt::format("recomputed in the backward pass: {} (--recompute {})\n",
                        description(job.question.recompute), name(job.question.recompute));
  if (job.question.overlap)
    text += fmt::format("overlap: {}, for all strategies but no-overlap (--overlap)\n",
                        name(*job.question.overlap));
  if (job.question.gradient_scale != 1)
    text +=
        fmt::format("gradients are scaled: {:g} of the network's elements (--scale-gradients)\n",
                    job.question.gradient_scale);
  if (job.question.compute_is_exact)
    text +=
        "compute times are taken as stated, without an interval and without input "
        "(--exact-compute)\n";
  if (job.question.engine != simulator::EngineKind::automatic)
    text += fmt::format("engine: {}, for all schedules (--engine)\n", name(job.question.engine));
  if (!job.plan) text += partly_taken_text(job);
  return text;
}

std::string rows_text(const job::Job& job, std::span<const simulator::StrategyPrediction> rows,
                      int width) {
  return table_of(job, rows, std::nullopt).fitted(width).text;
}

std::vector<Seconds> iterations_of(const job::PredictionTable& table) {
  std::vector<Seconds> times;
  for (const simulator::StrategyPrediction& row : table.rows)
    times.push_back(row.stragglers ? row.stragglers->iteration.mean : row.iteration.value);
  return times;
}

std::string to_markdown(const job::PredictionTable& table, std::size_t top) {
  return top_table(table, top).markdown();
}

std::string to_text(const job::PredictionTable& table, int width, std::size_t top,
                    bool provenance) {
  std::string text = title_text(table.job, table.network, table.ranks);
  const Table::Fitted rows = top_table(table, top).fitted(width);
  text += rows.text + winner_text(table) + layouts_text(table, width) + sensitivity_text(table);
  const simulator::StrategyPrediction& winner = table.rows[table.best()];
  text += fmt::format(
      "efficiency: {}against p0 = {} rank{} with the best plan of the same strategy{}\n"
      "interval: {}\n",
      table.job.stragglers ? "mean throughput " : "", winner.baseline_ranks,
      winner.baseline_ranks == 1 ? "" : "s", table.job.stragglers ? " and without stragglers" : "",
      job::effects_of(table.job) != nullptr
          ? "the middle 90 % of samples of all figures, and of what none of them explains"
          : "all figures at their fast or slow end");
  text += memory_text(table);
  text += thresholds_note(table);
  text += setting_text(table.job);
  text += straggler_note(table);
  text += time_budget_note({&table, 1});
  text += library_note({&table, 1});
  text += k_fac_note(table);
  text += links_note(table);
  text += rows.not_shown() + slower_note(top, table.rows.size());
  text += "\nAll times are predicted. They rest on:\n";
  return text + basis_note(table.job, winner.compute_source, provenance);
}

}  // namespace paceline::cli
