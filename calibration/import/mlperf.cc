// Tests: tests/calibration/import_mlperf_test.cc.
#include "calibration/import/mlperf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "calibration/fit/statistics.h"
#include "calibration/import/table_text.h"
#include "models/base/json_reader.h"
#include "models/base/limits.h"

namespace paceline::calibration {
namespace {

constexpr std::string_view mark = ":::MLLOG";
// Round 0.6 wrote ":::MLL 1556733699.710 run_start: {...}", and 0.5 no JSON around what it said.
constexpr std::string_view mark_of_2019 = ":::MLL ";
constexpr std::string_view mark_of_2018 = ":::MLPv0.5";
constexpr double most_samples = 1e15;
constexpr double latest_ms = 1e15;
constexpr std::size_t most_events = 1'000'000;
// Evaluations and blocks; each of these is held against each of those.
constexpr std::size_t most_parts = 10'000;
// No run has this many epochs that are epochs.
constexpr double most_epochs = 1000;

struct Stretch {
  double begin_ms = 0;
  double end_ms = 0;
  double samples = 0;  // 0: not told
};

double number_or(const JsonValue& object, const char* key, double otherwise) {
  return object.has_value(key) && object.at(key).is_number() ? object.at(key).number() : otherwise;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    const std::size_t at = line.text.find(mark);
    if (at == std::string_view::npos) {
      read_of_2019(line);
      return;
    }
    // Whoever prints an event twice, as tee does of two streams, means it once.
    const std::string_view said = line.text.substr(at);
    if (std::exchange(last_, said) == said) return;
    if (++events_ > most_events)
      throw InputError({file_, line.number}, "there are more than 1000000 events", "give fewer");
    std::string_view json = line.text.substr(at + mark.size());
    json = json.substr(0, json.rfind('}') == std::string_view::npos ? 0 : json.rfind('}') + 1);
    try {
      const JsonDocument document(json, file_, "the event",
                                  ":::MLLOG stands before a JSON object of mlperf_logging");
      const JsonValue event = document.root();
      take(event, event.at("key").text(), event.at("time_ms").number(0, latest_ms), line.number);
    } catch (const InputError& error) {
      // Each line is a document of its own, and its place is that of the line.
      throw InputError({file_, line.number}, error.problem(), error.remedy());
    }
  }

  Imported finish() {
    if (!run_begin_)
      throw InputError({file_}, "there is no run_start",
                       "give the log of an MLPerf training run, from run_start to run_stop");
    if (!run_end_)
      throw InputError({file_}, "there is no run_stop", "give the log of a run that has ended");
    if (*run_end_ <= *run_begin_)
      throw InputError({file_}, "run_stop is no later than run_start", "give the log as it is");
    const Stretch run{*run_begin_, *run_end_, samples_of_run()};
    if (run.samples <= 0)
      throw InputError({file_}, "the log does not say how many samples the run took",
                       "it has train_samples and epochs, or samples_count");
    Imported imported{.tool = "MLPerf log", .version = version_};
    ImportedThroughput throughput;
    throughput.benchmark = benchmark_;
    throughput.global_batch = global_batch_;
    std::vector<PerSecond> rates;
    for (const Stretch& part : parts_) {
      const double time = training_s(part);
      if (part.samples > 0 && time > 0) rates.emplace_back(part.samples / time);
    }
    const double time = training_s(run);
    if (time <= 0)
      throw InputError({file_}, "evaluations take all of the run", "give the log as it is");
    const PerSecond whole{run.samples / time};
    constexpr double ms = 1e-3;
    const double minutes = (run.end_ms - run.begin_ms) * ms / 60;
    const std::string evaluations =
        fmt::format("{} evaluation{}", evaluations_.size(), evaluations_.size() == 1 ? "" : "s");
    if (rates.size() >= 2)
      throughput.samples =
          median_figure(rates, Provenance::measured,
                        fmt::format("median of {} {} of a run of {:.4g} min without {}",
                                    rates.size(), part_name_, minutes, evaluations));
    else
      throughput.samples = Figure<PerSecond>::exact(
          whole, Provenance::measured,
          fmt::format("a run of {:.4g} min without {}", minutes, evaluations));
    if (!within_limits(throughput.samples.low) || !within_limits(throughput.samples.high))
      throw InputError({file_}, fmt::format("{:.4g} samples/s", throughput.samples.value.value()),
                       "throughputs are from 0.001 to 1e9 samples/s");
    imported.remarks.push_back(fmt::format(
        "run_start to run_stop: {:.4g} min, {:.0f} samples, {:.6g} samples/s; without {}: {:.6g} "
        "samples/s",
        minutes, run.samples, run.samples / ((run.end_ms - run.begin_ms) * ms), evaluations,
        whole.value()));
    if (!status_.empty() && status_ != "success")
      imported.remarks.push_back("the run ended with status " + status_);
    if (accumulation_ > 1)
      imported.remarks.push_back(fmt::format(
          "gradients are accumulated over {:.0f} steps: a rank's batch is that of all of them",
          accumulation_));
    if (by_epoch_count_)
      imported.remarks.emplace_back(
          "epoch_count counts samples in this log, as the throughput that it states shows");
    if (by_epoch_num_) imported.remarks.emplace_back("epoch_num counts samples in this log");
    if (stated_ > 0)
      imported.remarks.push_back(fmt::format(
          "tracked_stats last says a throughput of {:.6g}, of whatever it counts", stated_));
    imported.throughputs.push_back(std::move(throughput));
    return imported;
  }

 private:
  void read_of_2019(const TextLine& line) {
    const std::size_t at = line.text.find(mark_of_2019);
    if (at == std::string_view::npos) {
      if (line.text.find(mark_of_2018) != std::string_view::npos)
        throw InputError({file_, line.number}, "this is a log of MLPerf 0.5",
                         "give one of round 0.6 or later");
      return;
    }
    const std::string_view said = line.text.substr(at + mark_of_2019.size());
    if (std::exchange(last_, said) == said) return;
    const std::vector<std::string_view> row = words(said);
    const std::size_t brace = said.find('{');
    const std::size_t close = said.rfind('}');
    constexpr double ms = 1e3;
    const std::optional<double> time = row.empty() ? std::nullopt : number(row[0]);
    if (!time || *time < 0 || *time > latest_ms / ms || row.size() < 3 || !row[1].ends_with(':') ||
        close == std::string_view::npos || brace > close)
      throw InputError({file_, line.number}, "an event without time, key and value",
                       "it is ':::MLL 1556733699.710 run_start: {\"value\": null}'");
    if (++events_ > most_events)
      throw InputError({file_, line.number}, "there are more than 1000000 events", "give fewer");
    try {
      const JsonDocument document(said.substr(brace, close + 1 - brace), file_, "the event",
                                  ":::MLL and a key stand before a JSON object");
      take(document.root(), std::string(row[1].substr(0, row[1].size() - 1)), *time * ms,
           line.number);
    } catch (const InputError& error) {
      throw InputError({file_, line.number}, error.problem(), error.remedy());
    }
  }

  void take(const JsonValue& event, const std::string& key, double time, int line) {
    const bool has_metadata = event.has_value("metadata") && event.at("metadata").is_object();
    const auto metadata = [&](const char* name) {
      return has_metadata ? number_or(event.at("metadata"), name, -1) : -1;
    };
    if (key == "submission_benchmark" && event.has_value("value"))
      benchmark_ = printable(event.at("value").text());
    if (key == "global_batch_size") global_batch_ = count(event, key, line);
    if (key == "train_samples") train_samples_ = count(event, key, line);
    if (key == "gradient_accumulation_steps") accumulation_ = count(event, key, line);
    if (key == "tracked_stats" && event.has_value("value") && event.at("value").is_object())
      stated_ = std::max(0.0, number_or(event.at("value"), "throughput", stated_));
    if (key == "run_start") note(run_begin_, time, key, line);
    if (key == "run_stop") {
      note(run_end_, time, key, line);
      if (has_metadata && event.at("metadata").has_value("status"))
        status_ = printable(event.at("metadata").at("status").text());
    }
    const bool in_run = run_begin_ && (!run_end_ || key == "run_stop");
    if (!in_run) return;
    const double samples = metadata("samples_count");
    if (samples >= 0 && samples <= most_samples) {
      if (key == "run_stop") stop_samples_ = samples;
      largest_samples_ = std::max(largest_samples_, samples);
    }
    if (metadata("epoch_num") <= most_samples)
      largest_epoch_ = std::max(largest_epoch_, metadata("epoch_num"));
    if (key == "eval_start") eval_begin_ = time;
    if (evaluations_.size() >= most_parts || parts_.size() >= most_parts)
      throw InputError({file_, line}, "there are more than 10000 evaluations or blocks",
                       "give fewer");
    if (key == "eval_stop" && eval_begin_) {
      evaluations_.push_back({*eval_begin_, time, 0});
      eval_begin_.reset();
    }
    if (key == "block_start") open(block_, time, samples, metadata("epoch_count"));
    if (key == "block_stop") close(block_, time, samples, "blocks");
    if (key == "epoch_start") {
      open(epoch_, time, samples, 1);
      epoch_->number = metadata("epoch_num");
    }
    // There are logs whose run stops before its last epoch does.
    const double number = metadata("epoch_num");
    if (key == "epoch_stop" || (key == "run_stop" && number >= 0))
      close_epoch(time, samples, number);
  }

  // An epoch that the target ended has a part of its number: 0.85 of the one that began as 1, or as 0.
  void close_epoch(double time, double samples, double number) {
    if (epoch_ && epoch_->number >= 0 && number != std::floor(number)) {
      const double begun = std::max(0.0, std::ceil(epoch_->number) - 1);
      if (number > begun && number <= begun + 1) epoch_->epochs = number - begun;
    }
    close(epoch_, time, samples, "epochs");
  }

  struct Open {
    double begin_ms = 0;
    double samples_count = -1;
    double epochs = -1;
    double number = -1;  // of an epoch, as its start says
  };

  static void open(std::optional<Open>& part, double time, double samples, double epochs) {
    part = Open{time, samples, epochs, -1};
  }

  // Blocks are preferred to the epochs within them.
  void close(std::optional<Open>& part, double time, double samples, std::string_view name) {
    if (!part || time < part->begin_ms) return;
    Stretch stretch{part->begin_ms, time, 0};
    if (part->epochs > 0 && part->epochs <= most_epochs && train_samples_ > 0)
      stretch.samples = part->epochs * train_samples_;
    else if (part->samples_count >= 0 && samples > part->samples_count)
      stretch.samples = samples - part->samples_count;
    else if (counts_samples(*part, stretch))
      stretch.samples = part->epochs;
    part.reset();
    if (stretch.samples <= 0 || (part_name_ == "blocks" && name == "epochs")) return;
    if (part_name_ != name) parts_.clear();
    part_name_ = name;
    parts_.push_back(stretch);
  }

  // Whether "epoch_count" is of samples, which 3D U-Net writes from round 4.0 on: if it is, its block
  // has the throughput that the log states.
  bool counts_samples(const Open& part, const Stretch& stretch) {
    constexpr double near = 0.05;
    const double time = training_s(stretch);
    if (part.epochs <= most_epochs || part.epochs > most_samples || stated_ <= 0 || time <= 0)
      return false;
    const bool counts = std::abs(part.epochs / time / stated_ - 1) < near;
    by_epoch_count_ = by_epoch_count_ || counts;
    return counts;
  }

  void note(std::optional<double>& slot, double time, const std::string& key, int line) const {
    if (slot) throw InputError({file_, line}, key + " stands twice", "give the log of one run");
    slot = time;
  }

  [[nodiscard]] double count(const JsonValue& event, const std::string& key, int line) const {
    const JsonValue value = event.at("value");
    if (!value.is_number())
      throw InputError({file_, line}, key + " is no number", "it is a whole number");
    return value.number(1, most_samples);
  }

  double samples_of_run() {
    double samples = 0;
    for (const Stretch& part : parts_) samples += part.samples;
    const double told = std::max(stop_samples_, largest_samples_);
    if (told > 0) return told;
    if (samples > 0) return samples;
    by_epoch_num_ =
        largest_epoch_ > most_epochs && (train_samples_ == 0 || largest_epoch_ <= train_samples_);
    return by_epoch_num_ ? largest_epoch_ : 0;
  }

  // The time of a stretch without what of evaluations is in it.
  [[nodiscard]] double training_s(const Stretch& part) const {
    double time = part.end_ms - part.begin_ms;
    for (const Stretch& evaluation : evaluations_)
      time -= std::max(0.0, std::min(part.end_ms, evaluation.end_ms) -
                                std::max(part.begin_ms, evaluation.begin_ms));
    constexpr double ms = 1e-3;
    return time * ms;
  }

  const std::string& file_;
  std::string_view last_;  // the event before
  std::size_t events_ = 0;
  std::string version_;
  std::string benchmark_;
  std::string status_;
  double global_batch_ = 0;
  double train_samples_ = 0;
  double accumulation_ = 1;
  double stated_ = 0;
  std::optional<double> run_begin_;
  std::optional<double> run_end_;
  double stop_samples_ = 0;
  double largest_samples_ = 0;
  double largest_epoch_ = 0;
  bool by_epoch_num_ = false;
  bool by_epoch_count_ = false;
  std::optional<double> eval_begin_;
  std::vector<Stretch> evaluations_;
  std::optional<Open> block_;
  std::optional<Open> epoch_;
  std::vector<Stretch> parts_;
  std::string part_name_;
};

}  // namespace

bool looks_like_mlperf(std::string_view text) {
  return text.find(mark) != std::string_view::npos ||
         text.find(mark_of_2019) != std::string_view::npos ||
         text.find(mark_of_2018) != std::string_view::npos;
}

Imported parse_mlperf(std::string_view text, const std::string& file) {
  return read_lines<Reader>(text, file);
}

}  // namespace paceline::calibration
