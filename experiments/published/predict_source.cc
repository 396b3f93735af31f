// Tests: tests/experiments/published_test.cc.
#include "experiments/published/predict_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "experiments/published/counts.h"
#include "experiments/published/for_all.h"
#include "experiments/published/predict_all_reduces.h"
#include "experiments/published/row_job.h"
#include "models/base/error.h"
#include "models/base/interval.h"
#include "models/base/parse_units.h"
#include "simulator/cost/compute_time.h"
#include "simulator/cost/losses.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/iteration/time_to_train.h"
#include "simulator/prediction/matched_compute.h"

namespace paceline::experiments {
namespace {

using models::Profile;
using simulator::Predictor;
using simulator::StrategyPrediction;

// A series whose name begins so has the layouts of jobs, which are summed up apart.
constexpr std::string_view series_of_layouts = "layouts-";

// What is known of a row on the way to its result.
struct Work {
  const TrainingRow* row = nullptr;
  RowJob job;
  const Profile* profile = nullptr;  // of its series
  Figure<PerSecond> throughput;      // ours
  simulator::IterationSpread spread;
  std::string configuration;
  bool fits = true;   // the memory of the device, as it is predicted
  std::string fault;  // why there is none of these
};

// What all rows of a series rest on.
struct Series {
  Profile profile;
  std::optional<PerSecond> rank_rate;  // samples of a rank, at the most ranks that calibrate it
  double flops = 0;                    // of each of them
  std::string fault;                   // why it could not be calibrated
};

// The published throughput of a row that calibrates, with the middle 90 % of what rounds to it.
Figure<PerSecond> published_throughput(const TrainingRow& row, const RowJob& job) {
  const double factor = unit_factor(row);
  const double reach = interval_level * row.rounding;
  const double samples = job.samples();
  const auto rate = [&](double published) {
    const double value = factor * published;
    switch (row.quantity) {
      case Quantity::throughput:
        return PerSecond{value};
      case Quantity::iteration:
        return PerSecond{samples / value};
      case Quantity::minutes:
        return simulator::training_throughput(job.training_samples(), Seconds{value});
      case Quantity::efficiency:
      case Quantity::ratio:
      case Quantity::flops_per_parameter:
      case Quantity::idle_ranks:
      case Quantity::memory:
        break;
    }
    throw InputError(fmt::format("a row of {} calibrates nothing", name(row.quantity)),
                     "calibrate on a throughput, an iteration or a time to train");
  };
  const PerSecond ends[] = {rate(row.published - reach), rate(row.published + reach)};
  return {rate(row.published), std::min(ends[0], ends[1]), std::max(ends[0], ends[1]),
          Provenance::calibrated, fmt::format("row {}, {}", row.id, row.where)};
}

double flops_of_sample(const RowJob& job) {
  const models::NetworkWork& work = job.network->work;
  return static_cast<double>(work.forward_flops() + work.backward_flops());
}

// Calibrates a series on its rows, which come in the order of their ranks.
Series calibrated(const Source& source, const std::string& name,
                  const std::vector<const Work*>& rows) {
  Series series;
  series.profile.name = source.files.name + ", " + name;
  series.profile.origin = "paceline reproduce " + source.files.name;
  for (const Work* work : rows) {
    series.profile.cluster = work->job.cluster->name;
    series.profile.device = work->job.cluster->device.name;
    const simulator::PredictionRequest request = work->job.request(&series.profile);
    const Figure<PerSecond> published = published_throughput(*work->row, work->job);
    series.profile = simulator::calibrated_with(request, *work->job.options.strategy, published);
    series.rank_rate = published.value / work->row->ranks;
    series.flops = flops_of_sample(work->job);
  }
  return series;
}

std::string described(const StrategyPrediction& p, const models::Strategy& strategy) {
  std::string text = fmt::format("{}, {} on the wire", p.name, name(p.plan.wire));
  if (p.plan.overlap != strategy.overlap) text += fmt::format(", overlap {}", name(p.plan.overlap));
  if (p.thresholds) {
    if (strategy.takes_fusion() && p.thresholds->fusion > Bytes{0})
      text += ", theta " + to_text_binary(p.thresholds->fusion);
    if (strategy.takes_hybrid()) text += ", eta " + to_text(p.thresholds->hybrid);
    if (strategy.takes_group()) text += fmt::format(", k {}", p.thresholds->group_size);
    if (strategy.traits().all_at_once) text += fmt::format(", {} servers", p.thresholds->servers);
    if (p.thresholds->streams > 1) text += fmt::format(", {} streams", p.thresholds->streams);
  }
  return fmt::format("{}; {}; {}", text, p.timed_by, p.compute_source);
}

void predict(Work& work, Predictor& predictor) {
  const StrategyPrediction p = predictor.predict(*work.job.options.strategy);
  const double samples = work.job.samples();
  work.throughput = {p.throughput, PerSecond{samples / p.iteration.high.value()},
                     PerSecond{samples / p.iteration.low.value()}, Provenance::predicted, ""};
  work.spread = p.spread;
  work.fits = p.fits;
  work.configuration = described(p, *work.job.options.strategy);
}

// Predicts rows that share a predictor.
void predict_group(const std::vector<Work*>& group) {
  std::optional<Predictor> predictor;
  std::map<std::string_view, const Work*> known;  // by the strategy
  for (Work* work : group) {
    if (const Work*& same = known[work->job.options.strategy->name]; same == nullptr) {
      same = work;
    } else {
      work->throughput = same->throughput;
      work->spread = same->spread;
      work->configuration = same->configuration;
      work->fits = same->fits;
      work->fault = same->fault;
      continue;
    }
    try {
      if (!predictor) predictor.emplace(work->job.request(work->profile));
      predict(*work, *predictor);
    } catch (const InputError& error) {
      work->fault = error.what();
    } catch (const UnavailableError& error) {
      work->fault = error.what();
    }
  }
}

std::vector<std::vector<Work*>> groups_of(std::vector<Work>& works) {
  std::vector<std::vector<Work*>> groups;
  for (Work& work : works) {
    if (!work.fault.empty() || is_count(work.row->quantity)) continue;
    const auto fits = [&](const std::vector<Work*>& group) {
      return group.front()->profile == work.profile &&
             group.front()->job.shares_predictor(work.job);
    };
    const auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) {
      groups.push_back({&work});
    } else {
      group->push_back(&work);
    }
  }
  return groups;
}

// How far a row is from what calibrated it, or from the row `against` which it is predicted.
struct Distance {
  double doublings = 0;
  double exposed = 0;
};
Distance distance_of(const Work& work, const Work* against) {
  if (against == nullptr) return {work.spread.doublings, work.spread.exposed};
  const double doublings = std::log2(static_cast<double>(work.row->ranks) / against->row->ranks);
  return {std::abs(doublings), std::hypot(work.spread.exposed, against->spread.exposed)};
}

// The throughput of a row over that of another, whose samples go together.
Figure<double> ratio_of(const Work& work, const Work& against) {
  const double value = work.throughput.value / against.throughput.value;
  const models::Effects* effects =
      simulator::effects_of(*work.job.cluster, work.profile, /*compute_is_exact=*/false);
  if (effects == nullptr) {
    const double ends[] = {work.throughput.low / against.throughput.low,
                           work.throughput.high / against.throughput.high};
    return {value, std::min({value, ends[0], ends[1]}), std::max({value, ends[0], ends[1]}),
            Provenance::predicted, ""};
  }
  const Distance distance = distance_of(work, &against);
  const simulator::IntervalFactors times = simulator::ratio_interval(
      work.spread, against.spread,
      simulator::unexplained_deviation(*effects, distance.doublings, distance.exposed));
  return {value, value / times.high, value / times.low, Provenance::predicted, ""};
}

// Ours, in the unit of the row. `against` is the row that it is against, or null.
Figure<double> ours_of(const Work& work, const Work* against) {
  const TrainingRow& row = *work.row;
  const double factor = unit_factor(row);
  const auto scaled = [](const Figure<double>& figure, double by) {
    return Figure<double>{by * figure.value, by * figure.low, by * figure.high,
                          Provenance::predicted, ""};
  };
  const Figure<PerSecond>& rate = work.throughput;
  switch (row.quantity) {
    case Quantity::throughput:
      return scaled({rate.value.value(), rate.low.value(), rate.high.value(), {}, {}}, 1 / factor);
    case Quantity::efficiency:
      return scaled(ratio_of(work, *against),
                    static_cast<double>(against->row->ranks) / row.ranks / factor);
    case Quantity::ratio:
      return scaled(ratio_of(work, *against), 1 / factor);
    case Quantity::flops_per_parameter:
    case Quantity::idle_ranks:
    case Quantity::memory: {
      const double count = count_of(row.quantity, work.job) / factor;
      return {count, count, count, Provenance::predicted, ""};
    }
    case Quantity::iteration:
    case Quantity::minutes:
      break;
  }
  const double samples =
      row.quantity == Quantity::iteration ? work.job.samples() : work.job.training_samples();
  const auto time = [samples](PerSecond throughput) {
    return simulator::training_time(samples, throughput).value();
  };
  return scaled({time(rate.value), time(rate.high), time(rate.low), {}, {}}, 1 / factor);
}

// The naive guess of a row, in its unit (Row::naive), by the rate of a rank that is known of the series.
std::optional<double> naive_of(const Work& work, const Work* against, const Series& series) {
  const TrainingRow& row = *work.row;
  const double factor = unit_factor(row);
  if (row.quantity == Quantity::efficiency) return 1 / factor;
  if (row.quantity == Quantity::ratio)
    return static_cast<double>(row.ranks) / against->row->ranks / factor;
  if (!series.rank_rate) return std::nullopt;
  const double as_much = series.flops / flops_of_sample(work.job);
  const PerSecond rate = *series.rank_rate * (as_much * static_cast<double>(row.ranks));
  if (row.quantity == Quantity::throughput) return rate.value() / factor;
  const double samples =
      row.quantity == Quantity::iteration ? work.job.samples() : work.job.training_samples();
  return simulator::training_time(samples, rate).value() / factor;
}

// Computation beside collectives of the row's job, as the prediction has it of what was calibrated.
double beside_of(const RowJob& job, const models::Profile& profile,
                 const models::CalibratedSlowdown& entry) {
  const models::Effects* effects = simulator::effects_of(*job.cluster, &profile, false);
  if (effects == nullptr) return entry.beside_traffic->value;
  const models::Device& device = job.cluster->device;
  const auto bus = [&](int ranks) {
    return simulator::bus_bandwidth(
        simulator::communication_cost(*job.cluster, &profile, simulator::Bound::stated, ranks),
        ranks);
  };
  const simulator::Interference estimate = simulator::estimated_interference(
      simulator::stated_losses(*effects), device.multiprocessors.value_or(0),
      device.memory_bandwidth.value);
  return simulator::calibrated_interference(estimate, entry.beside_traffic->value,
                                            bus(entry.solved_from))
      .beside(bus(job.ranks));
}

// The command that prints ours. Its profile is given by the two figures that a profile of this
// program's own calibrations has: the rate of one rank, and the slowdown of several.
std::string command_of(const Work& work, const SourceParts& parts) {
  const RowJob& job = work.job;
  const simulator::Question& question = job.options.question;
  const bool is_time_to_train = work.row->quantity == Quantity::minutes;
  const simulator::ComputeTimes alone = simulator::compute_times(
      {job.network->work, job.cluster->device, work.profile, question.precision,
       question.batch_per_rank, 1, simulator::effects_of(*job.cluster, work.profile, false)},
      simulator::Bound::stated);
  std::string text = fmt::format(
      "paceline {} --model {} --cluster {} --ranks {} --batch {} --precision {} {}{} "
      "--throughput {:.10g}",
      is_time_to_train ? "cost" : "predict", parts.network_word(work.row->model),
      parts.cluster_word(work.row->cluster), job.ranks, question.batch_per_rank,
      name(question.precision), job.options.strategy_words, job.options.words,
      question.batch_per_rank / alone.total().value());
  if (job.ranks > 1) {
    for (const models::CalibratedSlowdown& entry : work.profile->slowdowns) {
      if (entry.network != job.network->work.name || entry.precision != question.precision)
        continue;
      text += fmt::format(" --slowdown {:.10g}", entry.factor.value);
      if (entry.beside_traffic)
        text += fmt::format(" --beside-traffic {:.10g}", beside_of(job, *work.profile, entry));
    }
  }
  if (work.row->sequence) text += fmt::format(" --sequence {}", *work.row->sequence);
  if (!job.cluster->profile.empty()) text += " --profile none";
  if (!work.fits) text += " --ignore-memory";
  if (is_time_to_train)
    text += fmt::format(" --epochs {:.10g} --dataset {:.10g}", job.options.length->count,
                        job.options.dataset->samples);
  return text;
}

Row result_of(const Work& work, const Work* against, CalibrationPoints points,
              const SourceParts& parts) {
  const TrainingRow& row = *work.row;
  const Figure<double> ours = ours_of(work, against);
  Row result;
  result.id = row.id;
  result.source = row.where;
  result.what = row.what;
  result.provenance = is_spent(row.role, points) ? Provenance::calibrated : Provenance::predicted;
  result.unit = row.unit;
  result.published = row.published;
  result.ours = ours.value;
  result.low = ours.low;
  result.high = ours.high;
  result.configuration = work.configuration;
  result.note = row.note;
  result.is_time = row.quantity == Quantity::iteration || row.quantity == Quantity::minutes;
  result.series = row.series;
  result.strategy = work.job.options.strategy->name;
  if (is_count(row.quantity)) {
    result.kind = RowKind::count;
    return result;
  }
  const bool is_mesh = work.job.options.question.layout != models::Layout{};
  if (is_mesh || work.job.options.strategy->sharded() != nullptr) result.kind = RowKind::sharded;
  if (row.series.starts_with(series_of_layouts)) result.kind = RowKind::layout;
  result.command = command_of(work, parts);
  const Distance distance = distance_of(work, against);
  result.doublings = distance.doublings;
  result.exposed = distance.exposed;
  result.contest = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", row.series, row.cluster,
                               row.model, row.batch, row.sequence.value_or(0), row.ranks,
                               name(row.quantity), row.unit, name(row.precision));
  if (row.quantity == Quantity::throughput || row.quantity == Quantity::iteration)
    result.sweep = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", row.series, row.cluster, row.model,
                               row.sequence.value_or(0), row.ranks, row.unit, name(row.precision),
                               work.job.samples());
  return result;
}

ClusterEdit edit_of(const PredictOptions& options) {
  auto* const remove = options.without == nullptr ? nullptr : options.without->from_cluster;
  return [widths = options.unexplained, remove](models::Cluster& cluster) {
    if (widths) set_unexplained(cluster, *widths);
    if (remove != nullptr) remove(cluster);
  };
}

class SourcePredictor {
 public:
  SourcePredictor(const Source& source, const PredictOptions& options)
      : source_(source), options_(options), parts_(source, edit_of(options)) {}

  Reproduction predict() {
    read_jobs();
    calibrate();
    std::vector<std::vector<Work*>> groups = groups_of(works_);
    for_all(groups, options_.threads, predict_group);
    Reproduction all = result();
    const bool lists = options_.faults == Faults::are_listed;
    std::vector<Row> all_reduces =
        predict_all_reduces(source_, parts_, options_.threads, lists ? &all.failed : nullptr);
    std::move(all_reduces.begin(), all_reduces.end(), std::back_inserter(all.rows));
    return all;
  }

 private:
  void read_jobs() {
    for (const TrainingRow& row : source_.training) {
      if (row.role == Role::left_out) continue;
      Work work;
      work.row = &row;
      try {
        work.job = parts_.job(row);
        if (options_.without != nullptr && options_.without->from_job != nullptr)
          options_.without->from_job(work.job);
      } catch (const InputError& error) {
        if (options_.faults == Faults::are_errors) throw;
        work.fault = error.what();
      }
      works_.push_back(std::move(work));
    }
  }

  void calibrate() {
    std::map<std::string, std::vector<const Work*>> spent;
    for (const Work& work : works_) {
      series_.try_emplace(work.row->series);
      if (is_spent(work.row->role, options_.points) && work.fault.empty())
        spent[work.row->series].push_back(&work);
    }
    for (auto& [name, rows] : spent) {
      std::stable_sort(rows.begin(), rows.end(),
                       [](const Work* a, const Work* b) { return a->row->ranks < b->row->ranks; });
      try {
        series_[name] = calibrated(source_, name, rows);
      } catch (const InputError& error) {
        if (options_.faults == Faults::are_errors) throw;
        series_[name].fault = fmt::format("series {} cannot be calibrated: {}", name, error.what());
      }
    }
    for (Work& work : works_) {
      const Series& series = series_[work.row->series];
      work.profile = &series.profile;
      if (work.fault.empty()) work.fault = series.fault;
    }
  }

  [[nodiscard]] const Work* work_of(const std::string& id) const {
    for (const Work& work : works_) {
      if (work.row->id == id) return &work;
    }
    return nullptr;
  }

  [[nodiscard]] Reproduction result() const {
    Reproduction result{.name = source_.files.name, .title = source_.title};
    for (const TrainingRow& row : source_.training) {
      if (row.role == Role::left_out) result.left_out.push_back({row.id, row.what, row.note});
    }
    for (const AllReduceRow& row : source_.all_reduces) {
      if (row.role == Role::left_out)
        result.left_out.push_back(
            {row.id, fmt::format("{} of {} ranks", row.library, row.ranks), row.note});
    }
    for (const auto& [name, series] : series_) {
      if (series.fault.empty() && series.profile.throughputs.empty())
        result.notes.push_back(fmt::format(
            "No row calibrates series {}: computation there is the device's roofline.", name));
    }
    for (const Work& work : works_) {
      const Work* against = work.row->against.empty() ? nullptr : work_of(work.row->against);
      const std::string& fault =
          against != nullptr && work.fault.empty() ? against->fault : work.fault;
      if (!fault.empty()) {
        if (options_.faults == Faults::are_errors) throw InputError(fault, "");
        result.failed.push_back({work.row->id, work.row->what, fault});
      } else if (work.row->role != Role::reference) {
        result.rows.push_back(result_of(work, against, options_.points, parts_));
        Row& row = result.rows.back();
        const bool is_of_jobs = row.kind == RowKind::training || row.kind == RowKind::sharded ||
                                row.kind == RowKind::layout;
        if (is_of_jobs && row.provenance == Provenance::predicted)
          row.naive = naive_of(work, against, series_.at(work.row->series));
      }
    }
    return result;
  }

  const Source& source_;
  PredictOptions options_;
  SourceParts parts_;
  std::vector<Work> works_;
  std::map<std::string, Series> series_;
};

}  // namespace

Reproduction predict_source(const Source& source, const PredictOptions& options) {
  return SourcePredictor(source, options).predict();
}

}  // namespace paceline::experiments
