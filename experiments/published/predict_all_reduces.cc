// Tests: tests/experiments/published_test.cc.
#include "experiments/published/predict_all_reduces.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "experiments/published/for_all.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/cost/nccl_tables.h"
#include "simulator/iteration/all_reduce_time.h"

namespace paceline::experiments {
namespace {

// Rows that differ in their sizes alone, and share what is prepared for them.
struct Sweep {
  const models::Cluster* cluster = nullptr;
  std::string cluster_word;
  std::vector<const AllReduceRow*> rows;
  // Rows of the same cluster and algorithm that calibrate.
  std::vector<const AllReduceRow*> measured = {};
  std::vector<Row> results = {};  // as `rows`
  std::string fault;
};

// "2.8" of "NCCL 2.8.3", as {2, 8}; {0, 0} where there is no number.
std::pair<int, int> version_in(std::string_view text) {
  const std::size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return {0, 0};
  int major = 0;
  int minor = 0;
  const char* const end = text.data() + text.size();
  const char* next = std::from_chars(text.data() + at, end, major).ptr;
  if (next != end && *next == '.') std::from_chars(next + 1, end, minor);
  return {major, minor};
}

// The newest version of NCCL's tables that is not newer than the library's, or the oldest; empty,
// the newest, where the library has no version.
std::string version_for(const std::string& library) {
  const std::pair<int, int> wanted = version_in(library);
  if (!library.starts_with("NCCL") || wanted.first == 0) return "";
  const std::vector<std::string> versions = simulator::nccl_versions();
  std::string chosen = versions.front();
  for (const std::string& version : versions) {
    if (version_in(version) <= wanted) chosen = version;
  }
  return chosen;
}

bool is_nccls(const std::string& algorithm) {
  return simulator::nccl_collective(algorithm).has_value();
}

std::string command_of(const AllReduceRow& row, const Sweep& sweep) {
  constexpr double us = 1e-6;
  std::string text = fmt::format("paceline time {} --cluster {} --ranks {} --size {:.0f}B",
                                 row.algorithm, sweep.cluster_word, row.ranks, row.bytes);
  for (std::size_t i = 0; i < sweep.measured.size(); ++i) {
    const AllReduceRow& measured = *sweep.measured[i];
    text += fmt::format("{}{:.0f}B={:.10g}us@{}", i == 0 ? " --measured " : ",", measured.bytes,
                        measured.published_s / us, measured.ranks);
  }
  if (row.collective != models::Collective::all_reduce)
    text += fmt::format(" --collective {}", name(row.collective));
  const std::string version = is_nccls(row.algorithm) ? version_for(row.library) : "";
  if (!version.empty()) text += " --nccl " + version;
  return text;
}

Row row_of(const AllReduceRow& row, const Figure<Seconds>& ours, std::string configuration) {
  constexpr double us = 1e-6;
  Row result;
  result.id = row.id;
  result.source = row.where;
  result.what =
      fmt::format("{}, {} ranks, {}", row.series, row.ranks, to_text_binary(Bytes{row.bytes}));
  result.provenance = row.role == Role::calibrates ? Provenance::calibrated : Provenance::predicted;
  result.unit = "us";
  result.published = row.published_s / us;
  result.ours = ours.value.value() / us;
  result.low = ours.low.value() / us;
  result.high = ours.high.value() / us;
  result.configuration = std::move(configuration);
  result.note = row.note;
  result.kind =
      row.collective == models::Collective::all_reduce ? RowKind::all_reduce : RowKind::collective;
  result.is_time = true;
  result.series = row.series;
  result.strategy = row.algorithm;
  result.contest = fmt::format("{}\n{}\n{}\n{}\n{}", row.cluster, row.ranks, row.library,
                               name(row.collective), row.bytes);
  result.bytes = row.bytes;
  return result;
}

Bytes bucket_of(const AllReduceRow& row) {
  return simulator::bucket_of(row.collective, row.ranks, Bytes{row.bytes});
}

std::vector<simulator::MeasuredAllReduce> measured_of(const Sweep& sweep) {
  std::vector<simulator::MeasuredAllReduce> measured;
  for (const AllReduceRow* row : sweep.measured)
    measured.push_back({row->ranks, bucket_of(*row), Seconds{row->published_s}});
  return measured;
}

void time_rows(Sweep& sweep) {
  const AllReduceRow& first = *sweep.rows.front();
  simulator::AllReduceRequest request{
      .cluster = *sweep.cluster, .ranks = first.ranks, .nccl_version = version_for(first.library)};
  request.measured = measured_of(sweep);
  simulator::AllReduceTimer timer(request);
  for (const AllReduceRow* row : sweep.rows) {
    const auto of_nccl = simulator::nccl_collective(row->algorithm, row->collective);
    const simulator::AllReduceTime time =
        of_nccl ? timer.by_nccl(*of_nccl, bucket_of(*row))
                : timer.by_engine(models::all_reduce_algorithm(row->algorithm).name, {},
                                  bucket_of(*row));
    const std::string& all_reduce = time.all_reduce.empty() ? row->algorithm : time.all_reduce;
    sweep.results.push_back(
        row_of(*row, time.time, fmt::format("{}; {}", all_reduce, time.timed_by)));
    sweep.results.back().command = command_of(*row, sweep);
  }
}

void time_sweep(Sweep* const& sweep) {
  try {
    time_rows(*sweep);
  } catch (const InputError& error) {
    sweep->fault = error.what();
  }
}

// Checks what does not depend on the size, and gives the row's cluster.
const models::Cluster& checked(const AllReduceRow& row, SourceParts& parts) {
  const models::Cluster& cluster = parts.cluster(row.cluster);
  models::check_ranks(cluster, row.ranks);
  if (!simulator::nccl_collective(row.algorithm, row.collective) &&
      models::all_reduce_algorithm(row.algorithm).collective != row.collective)
    throw InputError(fmt::format("{} is no {}", row.algorithm, name(row.collective)),
                     "write nccl before the name of a collective");
  return cluster;
}

}  // namespace

std::vector<Row> predict_all_reduces(const Source& source, SourceParts& parts, int threads,
                                     std::vector<RowWithout>* failed) {
  using Key = std::tuple<const models::Cluster*, int, std::string, models::Collective, std::string>;
  std::map<Key, Sweep> sweeps;
  const auto fault = [&](const AllReduceRow& row, const std::string& why) {
    failed->push_back({row.id, row.series + ", " + to_text_binary(Bytes{row.bytes}), why});
  };
  for (const AllReduceRow& row : source.all_reduces) {
    if (row.role == Role::left_out) continue;
    try {
      const models::Cluster& cluster = checked(row, parts);
      Sweep& sweep = sweeps[{&cluster, row.ranks, row.algorithm, row.collective, row.library}];
      sweep.cluster = &cluster;
      sweep.cluster_word = parts.cluster_word(row.cluster);
      sweep.rows.push_back(&row);
    } catch (const InputError& error) {
      const InputError placed = error.at({source.path("all_reduce.csv"), row.line});
      if (failed == nullptr) throw placed;
      fault(row, placed.what());
    }
  }
  for (auto& [key, sweep] : sweeps) {
    for (const AllReduceRow& row : source.all_reduces) {
      const AllReduceRow& first = *sweep.rows.front();
      if (row.role == Role::calibrates && row.cluster == first.cluster &&
          row.algorithm == first.algorithm && row.collective == first.collective)
        sweep.measured.push_back(&row);
    }
  }
  std::vector<Sweep*> work;
  for (auto& [key, sweep] : sweeps) work.push_back(&sweep);
  for_all(work, threads, time_sweep);
  std::map<const AllReduceRow*, Row*> results;
  for (Sweep* sweep : work) {
    if (!sweep->fault.empty() && failed == nullptr) throw InputError(sweep->fault, "");
    for (std::size_t i = 0; i < sweep->rows.size(); ++i) {
      if (sweep->fault.empty()) {
        results[sweep->rows[i]] = &sweep->results[i];
      } else {
        fault(*sweep->rows[i], sweep->fault);
      }
    }
  }
  std::vector<Row> rows;
  for (const AllReduceRow& row : source.all_reduces) {
    if (const auto found = results.find(&row); found != results.end())
      rows.push_back(std::move(*found->second));
  }
  return rows;
}

}  // namespace paceline::experiments
