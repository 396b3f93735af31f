// Tests: tests/calibration/import_training_log_test.cc.
#include "calibration/import/training_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "calibration/fit/statistics.h"
#include "calibration/import/table_text.h"
#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

struct LogKey {
  std::string_view text;  // in small letters
  LogQuantity quantity;
  double unit = 1;
};

// Each is searched as a whole word, and the longest that is there counts.
constexpr std::array keys = {
    LogKey{"elapsed time per iteration (ms)", LogQuantity::seconds, 1e-3},  // Megatron-LM
    LogKey{"elapsed_time_per_iteration_ms", LogQuantity::seconds, 1e-3},    // nanotron
    LogKey{"iteration_time_in_ms", LogQuantity::seconds, 1e-3},
    LogKey{"train_step_timing in s", LogQuantity::seconds},  // NeMo
    LogKey{"current step time", LogQuantity::seconds},       // fms-fsdp
    LogKey{"step time", LogQuantity::seconds},               // Megatron-Bridge
    LogKey{"step_time", LogQuantity::seconds},
    LogKey{"iteration_time", LogQuantity::seconds},
    LogKey{"iter_time", LogQuantity::seconds},
    LogKey{"seconds", LogQuantity::seconds},  // MaxText
    LogKey{"throughput/batches_per_sec", LogQuantity::iterations_per_second},
    LogKey{"throughput/device/tokens_per_sec", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"throughput/device/tokens_per_second", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"tokens_per_sec_per_gpu", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"tokens_per_second_per_gpu", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"current token per gpu per sec", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"tokens/s/device", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"tokens/s/gpu", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"tps", LogQuantity::tokens_per_second_of_a_rank},  // torchtitan
    LogKey{"wps", LogQuantity::tokens_per_second_of_a_rank},  // torchtitan until 2024
    LogKey{"tgs", LogQuantity::tokens_per_second_of_a_rank},
    LogKey{"throughput/tokens_per_sec", LogQuantity::tokens_per_second},
    LogKey{"tokens_per_second", LogQuantity::tokens_per_second},
    LogKey{"tokens_per_sec", LogQuantity::tokens_per_second},
    LogKey{"tokens/sec", LogQuantity::tokens_per_second},
    LogKey{"tokens/s", LogQuantity::tokens_per_second},
    LogKey{"throughput/device/samples_per_sec", LogQuantity::samples_per_second_of_a_rank},
    LogKey{"throughput/samples_per_sec", LogQuantity::samples_per_second},
    LogKey{"currsamplespersec", LogQuantity::samples_per_second},  // DeepSpeed
    LogKey{"samples_per_second", LogQuantity::samples_per_second},
    LogKey{"samples_per_sec", LogQuantity::samples_per_second},
    LogKey{"samples/sec", LogQuantity::samples_per_second},
    LogKey{"samples/s", LogQuantity::samples_per_second},
    LogKey{"images/sec", LogQuantity::samples_per_second},
    LogKey{"images/s", LogQuantity::samples_per_second},
};

// Where tqdm has the number before its unit.
constexpr std::array units = {LogKey{"s/it", LogQuantity::seconds},
                              LogKey{"it/s", LogQuantity::iterations_per_second}};

constexpr std::array<std::string_view, 2> batch_keys = {"global batch size", "global_batch_size"};
constexpr std::array<std::string_view, 4> step_keys = {"global_step", "step", "iteration", "iter"};

// The most of a line that is looked at: longer ones are no line of a log.
constexpr std::size_t most_of_line = 4096;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '.';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The line in small letters, without the escape sequences of terminals.
std::string plain(std::string_view line) {
  std::string text;
  line = line.substr(0, most_of_line);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      while (i < line.size() && !(line[i] >= 'a' && line[i] <= 'z') &&
             !(line[i] >= 'A' && line[i] <= 'Z'))
        ++i;
      continue;
    }
    const char c = line[i];
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

// The number at the beginning of a text: "1,234.5", "1.2e+03", "12.5k".
std::optional<double> leading_number(std::string_view text) {
  std::string digits;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_thousands = c == ',' && i > 0 && is_digit(text[i - 1]) && i + 3 < text.size() &&
                              is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
                              is_digit(text[i + 3]);
    if (is_thousands) continue;
    const bool is_exponent = c == 'e' && i + 1 < text.size() &&
                             (is_digit(text[i + 1]) || text[i + 1] == '+' || text[i + 1] == '-');
    const bool is_sign = (c == '+' || c == '-') && (i == 0 || text[i - 1] == 'e');
    if (!is_digit(c) && c != '.' && !is_exponent && !is_sign) break;
    digits += c;
  }
  while (!digits.empty() && digits.back() == '.') digits.pop_back();
  if (digits.starts_with('+')) digits.erase(0, 1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  const char suffix = i < text.size() ? text[i] : ' ';
  const bool is_alone = i + 1 >= text.size() || !is_word(text[i + 1]);
  if (is_alone && suffix == 'k') value *= 1e3;
  if (is_alone && suffix == 'm') value *= 1e6;
  if (is_alone && suffix == 'g') value *= 1e9;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The number behind a name: "tps: 7,520", "\"tps\": 7520", "tps=7520".
std::optional<double> number_behind(std::string_view line, std::size_t end) {
  bool is_separated = false;
  while (end < line.size()) {
    const char c = line[end];
    if (c == ':' || c == '=')
      is_separated = true;
    else if (c != ' ' && c != '\t' && c != '"' && c != '\'')
      break;
    ++end;
  }
  return is_separated ? leading_number(line.substr(end)) : std::nullopt;
}

// Where a name stands in a line as a whole word; npos where it does not.
std::size_t find_word(std::string_view line, std::string_view name) {
  for (std::size_t at = line.find(name); at != std::string_view::npos;
       at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end])))
      return at;
  }
  return std::string_view::npos;
}

std::optional<double> value_of(std::string_view line, std::string_view name) {
  const std::size_t at = find_word(line, name);
  return at == std::string_view::npos ? std::nullopt : number_behind(line, at + name.size());
}

// The seconds of a date with a time of day that a line has.
std::optional<double> moment_of(std::string_view line) {
  constexpr std::string_view form = "dddd-dd-dd dd:dd:dd";
  for (std::size_t at = 0; at + form.size() <= line.size(); ++at) {
    bool fits = true;
    for (std::size_t i = 0; fits && i < form.size(); ++i) {
      const char c = line[at + i];
      fits = form[i] == 'd' ? is_digit(c) : form[i] == ' ' ? c == ' ' || c == 't' : c == form[i];
    }
    if (!fits) continue;
    const auto two = [&](std::size_t i) {
      return (line[at + i] - '0') * 10 + (line[at + i + 1] - '0');
    };
    const std::chrono::year_month_day date{std::chrono::year(100 * two(0) + two(2)),
                                           std::chrono::month(static_cast<unsigned>(two(5))),
                                           std::chrono::day(static_cast<unsigned>(two(8)))};
    if (!date.ok()) return std::nullopt;
    const std::chrono::seconds whole = std::chrono::sys_days(date).time_since_epoch() +
                                       std::chrono::hours(two(11)) + std::chrono::minutes(two(14)) +
                                       std::chrono::seconds(two(17));
    auto seconds = static_cast<double>(whole.count());
    double digit = 0.1;
    std::size_t i = at + form.size();
    if (i < line.size() && (line[i] == '.' || line[i] == ','))
      for (++i; i < line.size() && is_digit(line[i]); ++i, digit /= 10)
        seconds += digit * (line[i] - '0');
    return seconds;
  }
  return std::nullopt;
}

std::optional<double> step_of(std::string_view line) {
  for (const std::string_view key : step_keys) {
    const std::size_t at = find_word(line, key);
    if (at == std::string_view::npos) continue;
    std::size_t end = at + key.size();
    while (end < line.size() && (line[end] == ' ' || line[end] == ':' || line[end] == '=' ||
                                 line[end] == '"' || line[end] == '\''))
      ++end;
    if (const auto step = leading_number(line.substr(end))) return step;
  }
  return std::nullopt;
}

// The samples per second of each iteration; none where the log does not tell them.
std::vector<PerSecond> samples_of(const ImportedIterations& training) {
  std::vector<PerSecond> all;
  const bool is_rate = training.quantity == LogQuantity::samples_per_second;
  if (!is_rate && (training.quantity != LogQuantity::seconds || training.global_batch == 0))
    return all;
  for (const double value : training.values)
    all.push_back(PerSecond{is_rate ? value : training.global_batch / value});
  return all;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  // Dates stay where they are, as they do not in text_lines(). Progress bars overwrite their line.
  void read(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
      read_line(plain(text.substr(begin, end - begin)));
      begin = end + 1;
    }
  }

  // Whether the text tells how long any iteration took.
  [[nodiscard]] bool has_values() const {
    return !values_.empty() || moments_.size() > to_size(least_values);
  }

  [[nodiscard]] Imported finish() {
    Imported imported{.tool = "training log", .version = {}};
    ImportedIterations training;
    const LogKey* const key = best_key();
    if (key != nullptr) {
      training.written_as = std::string(key->text);
      training.quantity = key->quantity;
      training.values = values_[key];
    } else {
      training.written_as = "dates of steps";
      training.values = times_of_steps();
    }
    const std::size_t warm_up = std::max<std::size_t>(1, training.values.size() / 10);
    if (training.values.size() < warm_up + to_size(least_values))
      throw InputError({file_},
                       fmt::format("it has {} iterations, of which the first {} warm up",
                                   training.values.size(), warm_up),
                       "give a log of more iterations");
    training.values.erase(training.values.begin(),
                          training.values.begin() + static_cast<std::ptrdiff_t>(warm_up));
    training.global_batch = global_batch_;
    imported.remarks.push_back(fmt::format("the first {} of {} iterations {} left out as warm-up",
                                           warm_up, warm_up + training.values.size(),
                                           warm_up == 1 ? "is" : "are"));
    imported.iterations = training.values.size();
    if (const auto samples = samples_of(training); !samples.empty())
      imported.throughputs.push_back(
          {{},
           training.global_batch,
           median_figure(samples, Provenance::measured,
                         fmt::format("{} of {} iterations", training.written_as, samples.size()))});
    imported.training = std::move(training);
    return imported;
  }

 private:
  static constexpr int least_values = 3;

  void read_line(const std::string& line) {
    for (const std::string_view key : batch_keys)
      if (const auto batch = value_of(line, key)) global_batch_ = std::max(0.0, *batch);
    bool has_value = false;
    for (const LogKey& key : keys) {
      const auto value = value_of(line, key.text);
      if (!value) continue;
      take(key, *value);
      has_value = true;
    }
    for (const LogKey& unit : units) {
      const std::size_t at = line.find(unit.text);
      if (at == std::string::npos || at == 0 || !is_digit(line[at - 1])) continue;
      std::size_t begin = at;
      while (begin > 0 && (is_digit(line[begin - 1]) || line[begin - 1] == '.')) --begin;
      if (const auto value = leading_number(line.substr(begin, at - begin))) {
        take(unit, *value);
        has_value = true;
      }
    }
    if (has_value) return;
    const auto moment = moment_of(line);
    const auto step = moment ? step_of(line) : std::nullopt;
    if (step && (moments_.empty() || *step > moments_.back().first))
      moments_.emplace_back(*step, *moment);
  }

  // Trainers write 0 for what they have not measured yet.
  void take(const LogKey& key, double value) {
    if (value > 0) values_[&key].push_back(value * key.unit);
  }

  // The key of the first quantity, of those with at least half as many values as any.
  [[nodiscard]] const LogKey* best_key() const {
    std::size_t most = 0;
    for (const auto& [key, values] : values_) most = std::max(most, values.size());
    const LogKey* best = nullptr;
    const auto better = [](const LogKey& a, const LogKey& b) {
      return std::pair(a.quantity, b.text.size()) < std::pair(b.quantity, a.text.size());
    };
    for (const auto& [key, values] : values_)
      if (2 * values.size() >= most && (best == nullptr || better(*key, *best))) best = key;
    return best;
  }

  [[nodiscard]] std::vector<double> times_of_steps() const {
    std::vector<double> times;
    for (std::size_t i = 1; i < moments_.size(); ++i) {
      const double passed = moments_[i].second - moments_[i - 1].second;
      if (passed > 0) times.push_back(passed / (moments_[i].first - moments_[i - 1].first));
    }
    return times;
  }

  std::string file_;
  std::map<const LogKey*, std::vector<double>> values_;
  std::vector<std::pair<double, double>> moments_;  // a step and its time
  double global_batch_ = 0;
};

}  // namespace

bool looks_like_training_log(std::string_view text) {
  Reader reader("");
  reader.read(head_of(text));
  return reader.has_values();
}

Imported parse_training_log(std::string_view text, const std::string& file) {
  Reader reader(file);
  reader.read(text);
  return reader.finish();
}

}  // namespace paceline::calibration
