// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "calibration/import/table_text.h"
#include "models/base/names.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::calibration {

using models::Collective;
using simulator::bus_factor;

namespace {

constexpr double most_error = 1e-2;

std::optional<models::WireType> wire_of(std::string_view type) {
  if (type == "float") return models::WireType::fp32;
  if (type == "half") return models::WireType::fp16;
  if (type == "bfloat16") return models::WireType::bf16;
  return std::nullopt;
}

std::string with_article(Collective collective) {
  const std::string_view text = name(collective);
  return fmt::format("{} {}", text.front() == 'a' ? "an" : "a", text);
}

// The programs of nccl-tests, and the names in rccl-tests' JSON.
struct Program {
  Collective collective;
  std::string_view program;
  std::string_view in_json;
};
constexpr std::array programs = {
    Program{Collective::all_reduce, "all_reduce_perf", "AllReduce"},
    Program{Collective::all_gather, "all_gather_perf", "AllGather"},
    Program{Collective::reduce_scatter, "reduce_scatter_perf", "ReduceScatter"},
    Program{Collective::all_to_all, "alltoall_perf", "AlltoAll"},
    Program{Collective::neighbour_exchange, "sendrecv_perf", "SendRecv"},
    Program{Collective::broadcast, "broadcast_perf", "Broadcast"},
    Program{Collective::reduce, "reduce_perf", "Reduce"},
    Program{Collective::gather, "gather_perf", "Gather"},
    Program{Collective::scatter, "scatter_perf", "Scatter"}};

}  // namespace

Collective collective_of_program(std::string_view name, const InputPlace& place) {
  const std::string_view program = name.substr(name.find_last_of('/') + 1);
  for (const Program& known : programs)
    if (program == known.program || name == known.in_json) return known.collective;
  throw InputError(place, "this is the output of " + in_quotes(program),
                   "give that of all_reduce_perf or of another collective");
}

std::string program_of(Collective collective) {
  return std::string(std::ranges::find(programs, collective, &Program::collective)->program);
}

void NcclTestsRows::add(const NcclTestsRow& row, const InputPlace& place) {
  count_row(rows_, place);
  if (row.bytes == Bytes{0}) {
    ++empty_;
    return;
  }
  const bool reduces = row.operation != "none";
  if (has_root_.value_or(row.has_root) != row.has_root || (has_root_ && reduces_ != reduces))
    throw InputError(place, "this row is of another collective than the rows before",
                     "give the output of one run after the other");
  has_root_ = row.has_root;
  reduces_ = reduces;
  in_place_ = row.in_place;
  checked_ = row.checked;
  ImportedCurve& curve = curves_[{printable(row.type), printable(row.operation)}];
  curve.samples.push_back({row.bytes, row.time});
  if (row.wrong > most_error) ++wrong_;
  if (row.algbw <= 0 || row.busbw <= 0 || row.algbw < algbw_) return;
  algbw_ = row.algbw;
  busbw_ = row.busbw;
  constexpr double giga = 1e9;
  seconds_by_algbw_ = row.time.value() * row.algbw * giga / row.bytes.value();
  fastest_ = place;
}

Imported NcclTestsRows::finish(const std::string& version, NcclTestsRun run,
                               const std::string& file, std::optional<Collective> stated) {
  if (curves_.empty())
    throw InputError({file}, "a table without rows", "give the output of a finished run");
  Imported imported{.tool = "nccl-tests", .version = version, .remarks = std::move(run.remarks)};
  check_time();
  const Collective collective = stated ? *stated : told_collective(run.ranks);
  if (!run.ranks.is_known()) {
    const Count allowed = ranks_of_bandwidth(collective);
    run.ranks = {std::max(run.ranks.least, allowed.least), std::max(run.ranks.least, allowed.most)};
    if (run.ranks.is_known()) {
      const std::string_view list = imported.remarks.empty() ? "no device is listed; " : "";
      imported.remarks.push_back(fmt::format("{}busbw is {:.3f} algbw, as over {} ranks", list,
                                             busbw_ / algbw_, run.ranks.least));
    }
  }
  for (auto& [kind, curve] : curves_) {
    const std::string& type = kind.first;
    const std::string& operation = kind.second;
    curve.kind = models::curve_kind(collective);
    curve.library = "nccl";
    curve.what =
        fmt::format("{}, {}, {}{}", program_of(collective), in_place_ ? "in place" : "out of place",
                    type, reduces_ ? " " + operation : "");
    curve.ranks = run.ranks;
    curve.nodes = run.nodes;
    curve.wire = wire_of(type);
    const auto leave_out = [&, samples = curve.samples.size()](std::string_view why) {
      imported.remarks.push_back(
          fmt::format("rows of {} {} are left out, {}: {}", type, operation, why, samples));
    };
    if (!curve.wire && reduces_) {
      leave_out("because gradients travel as float, half or bfloat16");
    } else if (const std::string chosen = reduction_of(type); operation != chosen) {
      leave_out(fmt::format("because there are rows of {} {}", type, chosen));
    } else {
      imported.curves.push_back(std::move(curve));
    }
  }
  if (imported.curves.empty())
    throw InputError({file}, "no row has type float, half or bfloat16",
                     "run it with -d float, half or bfloat16");
  if (run.ranks.is_known()) check_bus_bandwidth(collective, run.ranks.least);
  if (empty_ > 0)
    imported.remarks.push_back(fmt::format("rows of 0 bytes are left out: {}", empty_));
  if (wrong_ > 0)
    imported.remarks.push_back(
        fmt::format("rows with wrong results, whose times are not to be trusted: {}", wrong_));
  return imported;
}

// Gradients are summed; what averages them does the same work.
std::string NcclTestsRows::reduction_of(const std::string& type) const {
  for (const char* operation : {"sum", "avg"}) {
    if (curves_.contains({type, operation})) return operation;
  }
  return curves_.lower_bound({type, ""})->first.second;
}

// Both bandwidths are printed with two decimals.
constexpr double half_of_last_decimal = 0.005;

bool NcclTestsRows::is_ratio_known() const {
  return algbw_ >= 200 * half_of_last_decimal;
}

Collective NcclTestsRows::told_collective(const Count& ranks) const {
  const double ratio = is_ratio_known() ? busbw_ / algbw_ : 0;
  const double tolerance = 0.01 + 2 * half_of_last_decimal / std::max(algbw_, 1.0);
  const auto is_of = [&](Collective collective) {
    return ratio == 0 || !ranks.is_known() ||
           std::abs(ratio - bus_factor(collective, ranks.least)) <= tolerance;
  };
  const auto unknown = [&](std::string_view which) {
    return InputError(fastest_, fmt::format("{}, and the table does not say which", which),
                      "give --collective");
  };
  if (*has_root_) {
    if (reduces_) return Collective::reduce;
    if (!is_of(Collective::broadcast) || (ratio > 0 && ratio < 1 - tolerance))
      throw unknown("a gather or a scatter");
    return Collective::broadcast;
  }
  // 1 or more in an all-reduce.
  if (reduces_)
    return ratio > 0 && ratio < 1 - tolerance ? Collective::reduce_scatter : Collective::all_reduce;
  // 1 in an exchange with neighbours, and less in the others, which have one ratio.
  const bool may_be_of_neighbours = std::abs(ratio - 1) <= tolerance;
  if (may_be_of_neighbours && ranks.is_known() && !is_of(Collective::all_to_all))
    return Collective::neighbour_exchange;
  if (checked_ == NcclTestsChecked::unknown)
    throw unknown("an all-gather, an all-to-all or an exchange with neighbours");
  if (checked_ == NcclTestsChecked::both) return Collective::all_gather;
  if (may_be_of_neighbours) throw unknown("an all-to-all or an exchange with neighbours");
  return Collective::all_to_all;
}

void NcclTestsRows::check_bus_bandwidth(Collective collective, int ranks) const {
  if (!is_ratio_known()) return;
  const double expected = bus_factor(collective, ranks);
  const double found = busbw_ / algbw_;
  const double tolerance = 0.01 + 2 * half_of_last_decimal / algbw_;
  if (std::abs(found - expected) <= tolerance) return;
  throw InputError(fastest_,
                   fmt::format("busbw is {:.3f} algbw, and {:.3f} in {} over {} rank{}", found,
                               expected, with_article(collective), ranks, ranks == 1 ? "" : "s"),
                   "give the output of one run as it is");
}

// A time that was printed in another unit is a thousand times off.
void NcclTestsRows::check_time() const {
  constexpr double most_rounding = 0.5;
  if (algbw_ < 200 * half_of_last_decimal || std::abs(seconds_by_algbw_ - 1) < most_rounding)
    return;
  throw InputError(
      fastest_,
      fmt::format("the time is {:.3g} times what the size takes at its algbw", seconds_by_algbw_),
      "give the output as it is");
}

Count NcclTestsRows::ranks_of_bandwidth(Collective collective) const {
  Count ranks{.least = 2};
  // The factor is most (p-1)/p; that of broadcast and reduce tells nothing of p.
  const double most_factor = collective == Collective::all_reduce ? 2 : 1;
  const bool grows = bus_factor(collective, 2) < most_factor;
  if (!is_ratio_known() || !grows) return ranks;
  const double least = (busbw_ - half_of_last_decimal) / (algbw_ + half_of_last_decimal);
  const double most = (busbw_ + half_of_last_decimal) / (algbw_ - half_of_last_decimal);
  if (most < most_factor / 2)
    throw InputError(fastest_,
                     fmt::format("busbw is {:.3f} algbw, and {:.3g} or more in {}", busbw_ / algbw_,
                                 most_factor / 2, with_article(collective)),
                     "give the output of one run as it is");
  if (least >= most_factor) return ranks;
  const auto ranks_at = [&](double ratio) {
    return ratio < most_factor
               ? std::min(most_factor / (most_factor - ratio), static_cast<double>(ranks.most))
               : ranks.most;
  };
  const auto fewest = static_cast<int>(std::ceil(ranks_at(least)));
  const auto greatest = static_cast<int>(std::floor(ranks_at(most)));
  // Where no number is between the two, the rows are of another collective, or rounded otherwise.
  return fewest <= greatest ? Count{std::max(fewest, 2), greatest} : ranks;
}

}  // namespace paceline::calibration
