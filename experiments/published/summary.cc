// Tests: tests/experiments/published_test.cc.
#include "experiments/published/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "models/base/interval.h"

namespace paceline::experiments {
namespace {

// Published speeds that differ by no more than this share are not told apart.
constexpr double told_apart = 0.05;

double speed(double value, bool is_time) {
  return is_time ? 1 / value : value;
}

void count_pair(const Row& a, const Row& b, Summary& summary) {
  if (a.strategy == b.strategy) return;
  const double published = speed(a.published, a.is_time) / speed(b.published, b.is_time);
  if (std::max(published, 1 / published) <= 1 + told_apart) return;
  const double ours = speed(a.ours, a.is_time) / speed(b.ours, b.is_time);
  ++summary.pairs;
  if ((published > 1 && ours > 1) || (published < 1 && ours < 1)) ++summary.ordered;
}

// Both are given the rows of one sweep.
double regret(const std::vector<const Row*>& rows) {
  const auto ours = [](const Row* row) { return speed(row->ours, row->is_time); };
  const auto published = [](const Row* row) { return speed(row->published, row->is_time); };
  const Row* const chosen = *std::ranges::max_element(rows, {}, ours);
  const Row* const best = *std::ranges::max_element(rows, {}, published);
  return published(best) / published(chosen) - 1;
}

double kendalls_tau(const std::vector<const Row*>& rows) {
  int ordered = 0;
  int pairs = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double published = rows[i]->published - rows[j]->published;
      const double ours = rows[i]->ours - rows[j]->ours;
      if (published == 0) continue;
      ++pairs;
      if (ours != 0) ordered += (published > 0) == (ours > 0) ? 1 : -1;
    }
  }
  return pairs == 0 ? 0 : static_cast<double>(ordered) / pairs;
}

}  // namespace

Sweeps sweeps_of(std::span<const Row> rows) {
  std::map<std::string, std::vector<const Row*>> all;
  for (const Row& row : rows)
    if (!row.sweep.empty() && row.provenance == Provenance::predicted)
      all[row.sweep].push_back(&row);
  constexpr std::size_t least = 3;
  Sweeps found;
  std::vector<double> regrets;
  std::vector<double> taus;
  for (const auto& [job, layouts] : all) {
    if (layouts.size() < least) continue;
    ++found.sweeps;
    found.rows += static_cast<int>(layouts.size());
    regrets.push_back(regret(layouts));
    taus.push_back(kendalls_tau(layouts));
    found.mean_regret += regrets.back();
  }
  if (found.sweeps == 0) return found;
  std::ranges::sort(regrets);
  std::ranges::sort(taus);
  found.mean_regret /= found.sweeps;
  found.median_regret = quantile(regrets, 0.5);
  found.worst_regret = regrets.back();
  found.median_tau = quantile(taus, 0.5);
  return found;
}

Summary summary_of(std::span<const Row> rows, const std::function<bool(const Row&)>& counts) {
  Summary summary;
  std::vector<double> errors;
  std::vector<double> absolute;
  std::vector<double> naive;
  std::vector<double> beside_naive;
  std::map<std::string, std::vector<const Row*>> contests;
  for (const Row& row : rows) {
    if (!counts(row)) continue;
    if (row.provenance != Provenance::predicted) {
      ++summary.calibrated;
      continue;
    }
    const double error = row.speed_error();
    errors.push_back(error);
    absolute.push_back(std::abs(error));
    if (row.naive) {
      naive.push_back(std::abs(row.speed_error_of(*row.naive)));
      beside_naive.push_back(std::abs(error));
    }
    if (std::abs(error) >= std::abs(summary.worst)) summary.worst = error;
    if (row.is_inside()) ++summary.inside;
    if (row.contest.empty()) continue;
    std::vector<const Row*>& contest = contests[row.contest];
    for (const Row* other : contest) count_pair(*other, row, summary);
    contest.push_back(&row);
  }
  summary.rows = static_cast<int>(errors.size());
  if (errors.empty()) return summary;
  for (std::vector<double>* const values : {&errors, &absolute, &naive, &beside_naive})
    std::ranges::sort(*values);
  constexpr double most = 0.9;
  summary.median = quantile(absolute, 0.5);
  summary.p90 = quantile(absolute, most);
  summary.bias = quantile(errors, 0.5);
  if (!naive.empty())
    summary.naive = {static_cast<int>(naive.size()), quantile(naive, 0.5), quantile(naive, most),
                     quantile(beside_naive, 0.5), quantile(beside_naive, most)};
  return summary;
}

std::string_view name(RowKind kind) {
  switch (kind) {
    case RowKind::training:
      return "training";
    case RowKind::sharded:
      return "sharded";
    case RowKind::layout:
      return "layout";
    case RowKind::all_reduce:
      return "all-reduce";
    case RowKind::collective:
      return "collective";
    case RowKind::count:
      return "count";
  }
  return "unknown";
}

std::vector<Row> rows_of(std::span<const Reproduction> sources) {
  std::vector<Row> rows;
  for (const Reproduction& source : sources)
    rows.insert(rows.end(), source.rows.begin(), source.rows.end());
  return rows;
}

bool is_training(const Row& row) {
  return row.kind == RowKind::training;
}

bool is_sharded(const Row& row) {
  return row.kind == RowKind::sharded && (row.naive || row.provenance == Provenance::calibrated);
}

bool is_sharded_from_datasheet(const Row& row) {
  return row.kind == RowKind::sharded && !is_sharded(row);
}

std::span<const RowClass> row_classes() {
  static constexpr std::array classes = {
      RowClass{"rows", "", "training", is_training},
      RowClass{"rows of sharded training", ", sharded", "sharded", is_sharded},
      RowClass{"rows of sharded training from datasheets", ", from datasheets",
               "sharded_from_datasheets", is_sharded_from_datasheet},
      RowClass{"rows of layouts", ", layouts", "layouts", is_layout},
      RowClass{"all-reduces up to 64 KiB", ", all-reduces up to 64 KiB", "small_all_reduces",
               is_small_all_reduce},
      RowClass{"all-reduces above 64 KiB", ", all-reduces above", "large_all_reduces",
               is_large_all_reduce},
      RowClass{"other collectives", ", other collectives", "other_collectives",
               is_other_collective}};
  return classes;
}

bool is_layout(const Row& row) {
  return row.kind == RowKind::layout;
}

bool is_small_all_reduce(const Row& row) {
  return row.kind == RowKind::all_reduce && row.bytes <= small_all_reduce_bytes;
}

bool is_other_collective(const Row& row) {
  return row.kind == RowKind::collective;
}

bool is_large_all_reduce(const Row& row) {
  return row.kind == RowKind::all_reduce && row.bytes > small_all_reduce_bytes;
}

}  // namespace paceline::experiments
