// Tests: tests/cli/time_test.py.
#include "cli/job/time_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/job/measured.h"
#include "cli/job/named_things.h"
#include "cli/job/option_values.h"
#include "cli/job/sizes.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/library_curve.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepare.h"

namespace paceline::job {
namespace {

using simulator::AllReduceTimer;

constexpr const char* default_sizes = "8-1GiB";

std::vector<Bytes> whole_elements(std::vector<Bytes> sizes, models::WireType type) {
  const double element = models::element_size(type).value();
  for (const Bytes size : sizes) {
    if (std::fmod(size.value(), element) != 0)
      throw InputError(
          {"--size"},
          fmt::format("{:.15g} B are no whole elements of {} bytes", size.value(), element),
          fmt::format("give multiples of {} B", element));
  }
  return sizes;
}

// The sizes that --size names; by default all.
std::vector<Bytes> named_sizes(const TimeOptions& options) {
  constexpr double least_factor = 1.1;
  constexpr double largest_factor = 1e6;
  const double factor = parsing_option(
      "--factor", [&] { return parse_number(options.factor, least_factor, largest_factor); });
  const std::string text = options.sizes.empty() ? default_sizes : options.sizes;
  return parsing_option("--size", [&] { return parse_sizes(text, factor); });
}

// The entry of the catalogue that is asked for; nothing for NCCL's own, for "all" and for other texts.
const models::CollectiveAlgorithm* asked_algorithm(const TimeOptions& options) {
  const auto catalogue = models::collective_catalogue();
  const auto named =
      std::ranges::find(catalogue, options.algorithm, &models::CollectiveAlgorithm::name);
  return named == catalogue.end() ? nullptr : &*named;
}

// The collective that is asked for, or that the algorithm is of; nothing where neither says it.
std::optional<models::Collective> asked_collective(const TimeOptions& options) {
  std::optional<models::Collective> asked;
  if (!options.collective.empty())
    asked = parsing_option("--collective",
                           [&] { return models::collective_from_name(options.collective); });
  const models::CollectiveAlgorithm* const named = asked_algorithm(options);
  if (named == nullptr) return asked;
  if (asked.value_or(named->collective) != named->collective)
    throw InputError({"--collective"},
                     fmt::format("{} is of {}", named->name, name(named->collective)),
                     "leave it out");
  return named->collective;
}

// Takes the collective, the ranks, the type and the sizes of the table from the file of measurements.
void take_measured(const TimeOptions& options, TimeTable& table) {
  if (options.algorithm == "all")
    throw InputError({"--against"}, "every algorithm is asked for",
                     "name the one that was measured, as in paceline time nccl");
  std::optional<int> ranks;
  if (!options.build.ranks.empty()) ranks = parse_ranks(options.build.ranks, table.cluster);
  std::optional<models::WireType> type;
  if (!options.type.empty()) type = table.type;
  table.against = read_measured_times(options.against, ranks, type, asked_collective(options));
  table.collective = table.against->collective;
  table.ranks = parse_ranks(std::to_string(table.against->ranks), table.cluster);
  table.type = table.against->type;
  check_measured_nodes(table.cluster, table.ranks, table.against->nodes, table.against->file);
  if (!options.sizes.empty()) {
    const std::vector<Bytes> sizes = named_sizes(options);
    keep_sizes(*table.against, *std::ranges::min_element(sizes), *std::ranges::max_element(sizes));
  }
  for (const calibration::SizeSpread& time : table.against->times)
    table.sizes.push_back(time.bytes);
}

void check_collective(const TimeOptions& options, const TimeTable& table) {
  if (simulator::nccl_collective(options.algorithm))
    parsing_option("--collective",
                   [&] { return simulator::nccl_collective(options.algorithm, table.collective); });
}

models::ScheduleOptions schedule_options(const ScheduleOptions& options, int ranks) {
  return {
      .ranks = ranks,
      .group_size = optional_count("--group", options.group, ranks).value_or(0),
      .segments = optional_count("--segments", options.segments, models::max_segments).value_or(0),
      .rings = optional_count("--rings", options.rings, ranks).value_or(0),
      .servers = optional_count("--servers", options.servers, ranks).value_or(0)};
}

std::vector<simulator::MeasuredAllReduce> with_buckets(
    models::Collective collective, std::vector<simulator::MeasuredAllReduce> measured) {
  for (simulator::MeasuredAllReduce& one : measured)
    one.bytes = simulator::bucket_of(collective, one.ranks, one.bytes);
  return measured;
}

// Fills in columns.
class Columns {
 public:
  // Measured times belong to the algorithm that is asked for, not to those that stand beside it.
  Columns(TimeTable& table, const simulator::AllReduceRequest& request,
          models::ScheduleOptions options)
      : table_(table),
        request_(request),
        options_(options),
        timer_(request),
        beside_(without_measured(request)) {}

  void add_schedule(std::string_view algorithm) {
    TimedColumn column{.name = std::string(algorithm)};
    const bool is_limited = request_.time_budget == simulator::TimeBudget::bounded &&
                            request_.engine == simulator::EngineKind::automatic;
    double followed = 0;
    for (const Bytes size : table_.sizes)
      if (is_limited) followed += timer_.followed(algorithm, options_, size);
    column.is_bounded = followed > simulator::most_followed_in_time;
    if (column.is_bounded && !by_steps_) {
      simulator::AllReduceRequest by_steps = request_;
      by_steps.engine = simulator::EngineKind::step;
      by_steps_.emplace(by_steps);
    }
    AllReduceTimer& timer = column.is_bounded ? *by_steps_ : timer_;
    for (const Bytes size : table_.sizes)
      column.times.push_back(timer.by_name(
          algorithm, options_, simulator::bucket_of(table_.collective, table_.ranks, size)));
    const std::string& first = column.times.front().all_reduce;
    if (std::ranges::count(column.times, first, &simulator::AllReduceTime::all_reduce) ==
        std::ssize(column.times))
      column.name = first;
    table_.columns.push_back(std::move(column));
    note_open_options(models::collective_algorithm(algorithm));
  }

  void add_nccl(const std::string& name, TimedAs as) {
    const simulator::NcclCollective of = *simulator::nccl_collective(name, table_.collective);
    TimedColumn column{.name = name, .as = as};
    AllReduceTimer& timer = as == TimedAs::asked ? timer_ : beside_;
    for (const Bytes size : table_.sizes)
      column.times.push_back(
          timer.by_nccl(of, simulator::bucket_of(table_.collective, table_.ranks, size)));
    table_.nccl_version = timer.nccl_model().tables().version;
    table_.columns.push_back(std::move(column));
  }

  void add_curve(models::Library library) {
    TimedColumn column{.name = fmt::format("{} curve", name(library)), .as = TimedAs::library};
    for (const Bytes size : table_.sizes) {
      auto time = timer_.by_curve(
          library, simulator::bucket_of(table_.collective, table_.ranks, size), table_.collective);
      if (!time) return;
      column.times.push_back(*std::move(time));
    }
    table_.columns.push_back(std::move(column));
  }

  // An algorithm that these ranks do not allow, or with too much to follow, is left out.
  void add_or_leave_out(std::string_view algorithm) {
    try {
      add_schedule(algorithm);
    } catch (const InputError& error) {
      table_.left_out.push_back({std::string(algorithm), error.problem()});
    }
  }

 private:
  void note_open_options(const models::CollectiveAlgorithm& algorithm) {
    const auto note = [&](bool is_taken, int given, std::string_view option) {
      if (is_taken && given == 0 && std::ranges::count(table_.open_options, option) == 0)
        table_.open_options.emplace_back(option);
    };
    note(algorithm.takes_group, options_.group_size, "--group");
    note(algorithm.takes_segments, options_.segments, "--segments");
    note(algorithm.takes_rings, options_.rings, "--rings");
    note(algorithm.takes_servers, options_.servers, "--servers");
  }

  static simulator::AllReduceRequest without_measured(simulator::AllReduceRequest request) {
    request.measured.clear();
    return request;
  }

  TimeTable& table_;
  simulator::AllReduceRequest request_;
  models::ScheduleOptions options_;
  AllReduceTimer timer_;
  AllReduceTimer beside_;
  std::optional<AllReduceTimer> by_steps_;
};

}  // namespace

std::size_t TimeTable::asked() const {
  return to_size(std::ranges::count(columns, TimedAs::asked, &TimedColumn::as));
}

std::size_t TimeTable::best(std::size_t size) const {
  const auto end = columns.begin() + static_cast<std::ptrdiff_t>(asked());
  const auto least = std::min_element(columns.begin(), end, [&](const auto& a, const auto& b) {
    return a.times[size].time.value < b.times[size].time.value;
  });
  return to_size(least - columns.begin());
}

std::string chosen_options(const TimedColumn& column, std::size_t size) {
  const std::string& all_reduce = column.times[size].all_reduce;
  if (all_reduce.size() <= column.name.size()) return {};
  const std::string options = all_reduce.substr(column.name.size());
  return options.substr(options.find_first_not_of(", "));
}

bool TimeTable::is_calibrated(std::size_t size) const {
  return std::ranges::any_of(measured, [&](const simulator::MeasuredAllReduce& one) {
    return one.ranks == ranks && one.bytes == sizes[size];
  });
}

std::vector<BesideMeasured> beside_measured(const TimeTable& table) {
  std::vector<BesideMeasured> all;
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    BesideMeasured row{.measured = table.against->times[i],
                       .predicted = table.columns.front().times[i].time,
                       .verdict = std::nullopt};
    const Seconds predicted = row.predicted.value;
    const bool is_slowest_farthest =
        row.measured.most / predicted >= predicted / row.measured.least;
    if (!table.is_calibrated(i))
      row.verdict =
          calibration::verdict(is_slowest_farthest ? row.measured.most : row.measured.least,
                               row.predicted.low, row.predicted.high);
    all.push_back(std::move(row));
  }
  return all;
}

std::optional<BesideMeasured> farthest_behind(const TimeTable& table, const DeviationLimit& limit) {
  std::optional<BesideMeasured> farthest;
  double most = 1;
  for (const BesideMeasured& row : beside_measured(table)) {
    if (!row.verdict) continue;
    // How many times as long as the limit allows.
    const double behind =
        limit.share ? *limit.share / row.share() : row.measured.most / row.predicted.high;
    if (behind <= most) continue;
    most = behind;
    farthest = row;
  }
  return farthest;
}

BytesPerSecond algorithm_bandwidth(Bytes bytes, Seconds time) {
  return bytes / time;
}

TimeTable time_table(const TimeOptions& options, const TimeObserver& observer,
                     const GivenValues& given) {
  if (!given.cluster) require_option(options.cluster, "--cluster", "h200-ndr");
  TimeTable table;
  table.cluster =
      placed(given.cluster ? *given.cluster : load_cluster(options.cluster), options.placement);
  if (!options.type.empty())
    table.type =
        parsing_option("--dtype", [&] { return models::wire_type_from_name(options.type); });
  if (options.against.empty()) {
    table.collective = asked_collective(options).value_or(models::Collective::all_reduce);
    require_option(options.build.ranks, "--ranks", "16");
    table.ranks = parse_ranks(options.build.ranks, table.cluster);
    table.sizes = whole_elements(named_sizes(options), table.type);
  } else {
    take_measured(options, table);
  }
  if (table.ranks < 2) throw InputError({"--ranks"}, "one rank sends nothing", "give at least 2");
  table.engine =
      parsing_option("--engine", [&] { return simulator::engine_from_name(options.engine); });
  table.profile = given.profile ? given.profile : load_profile(options.profile, table.cluster);
  const std::string version =
      options.nccl.empty() ? simulator::nccl_versions().back() : options.nccl;
  parsing_option("--nccl", [&] { return simulator::nccl_tables(version); });

  table.measured = parse_measured(options.measured, table.ranks, table.cluster);
  check_possible(table.measured, table.collective, table.cluster,
                 table.profile ? &*table.profile : nullptr);
  const bool is_all = options.algorithm == "all";
  check_collective(options, table);
  if (is_all && !options.measured.empty())
    throw InputError({"--measured"}, "every algorithm is asked for",
                     "name the one that was measured");
  Columns columns(
      table,
      {.cluster = table.cluster,
       .profile = table.profile ? &*table.profile : nullptr,
       .ranks = table.ranks,
       .wire = table.type,
       .engine = table.engine,
       .nccl_version = version,
       .time_budget = is_all ? simulator::TimeBudget::bounded : simulator::TimeBudget::unlimited,
       .measured = with_buckets(table.collective, table.measured)},
      schedule_options(options.build, table.ranks));
  const auto begin = [&](std::string_view algorithm, double share) {
    if (observer) observer(algorithm, share);
  };
  if (is_all) {
    std::vector<std::string_view> names;
    for (const models::CollectiveAlgorithm& entry : models::collective_catalogue())
      if (entry.collective == table.collective) names.push_back(entry.name);
    for (std::size_t i = 0; i < names.size(); ++i) {
      begin(names[i], static_cast<double>(i) / static_cast<double>(names.size()));
      columns.add_or_leave_out(names[i]);
    }
  } else {
    begin(options.algorithm, 0);
    if (simulator::nccl_collective(options.algorithm)) {
      check_taken(options.build, nullptr, options.algorithm);
      columns.add_nccl(options.algorithm, TimedAs::asked);
    } else {
      if (const auto* const named = asked_algorithm(options))
        check_taken(options.build, named, options.algorithm);
      columns.add_schedule(options.algorithm);
    }
  }
  if (options.algorithm != "nccl" && simulator::sums_by_nccl(table.cluster.device) &&
      simulator::is_nccls(table.collective))
    columns.add_nccl("nccl", TimedAs::nccl);
  columns.add_curve(models::Library::nccl);
  columns.add_curve(models::Library::open_mpi);
  return table;
}

}  // namespace paceline::job
