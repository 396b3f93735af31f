// Tests: tests/cli/train_test.py (end to end).
#include "cli/training_report.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/output.h"
#include "cli/progress.h"
#include "models/base/error.h"
#include "runtime/training/training_json.h"

namespace paceline::cli {
namespace {

constexpr std::chrono::milliseconds between_progress{100};
// The time between two lines where there is no terminal.
constexpr std::chrono::seconds between_lines{30};

double share(Seconds part, Seconds whole) {
  return whole > Seconds{0} ? part / whole : 0;
}

std::string bar(double done, int width) {
  const int full = static_cast<int>(done * width);
  std::string text;
  for (int i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text;
}

std::string clock(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

TrainingReport::TrainingReport(const std::string& metrics_path, bool goes_on, bool quiet)
    : path_(metrics_path), goes_on_(goes_on), quiet_(quiet), is_terminal_(can_steer_terminal()) {
  if (path_.empty()) return;
  metrics_.reset(std::fopen(path_.c_str(), "a+"));
  if (!metrics_) throw RunError("write " + path_, std::strerror(errno));
}

TrainingReport::~TrainingReport() {
  clear_progress();
}

// Empties the file of a new run. In the file of a run that goes on, ends a line that was cut short.
void TrainingReport::open_metrics() {
  struct stat status = {};
  const bool is_file = ::fstat(::fileno(metrics_.get()), &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && !goes_on_ && ::ftruncate(::fileno(metrics_.get()), 0) != 0)
    throw RunError("write " + path_, std::strerror(errno));
  char last = '\n';
  if (is_file && goes_on_ && status.st_size > 0 &&
      ::pread(::fileno(metrics_.get()), &last, 1, status.st_size - 1) == 1 && last != '\n')
    std::fputc('\n', metrics_.get());
}

// Needs a file of metrics.
void TrainingReport::write(const std::string& line) {
  std::string text;
  if (!facts_.empty()) {
    open_metrics();
    text = std::exchange(facts_, {}) + "\n";
  }
  text += line + "\n";
  const bool whole = std::fwrite(text.data(), 1, text.size(), metrics_.get()) == text.size() &&
                     std::fflush(metrics_.get()) == 0;
  if (!whole) throw RunError("write " + path_, std::strerror(errno));
}

void TrainingReport::clear_progress() {
  if (progress_shown_) steer_terminal("\r\x1b[K");
  progress_shown_ = false;
}

void TrainingReport::start(models::NumberType arithmetic) {
  if (on_start_) facts_ = on_start_(arithmetic);
}

void TrainingReport::iteration(const runtime::IterationReport& r) {
  if (metrics_) write(iteration_line(r));
  const double weight = first_ ? 1 : 0.1;
  first_ = false;
  const auto smooth = [weight](double& mean, double value) { mean += weight * (value - mean); };
  smooth(images_per_s_, r.images.value());
  smooth(loss_, r.loss);
  smooth(accuracy_, r.accuracy);
  smooth(exposed_, share(r.exposed, r.time));
  const auto now = std::chrono::steady_clock::now();
  if (!is_terminal_) {
    if (quiet_ || now - last_progress_ < progress_after(between_lines)) return;
    last_progress_ = now;
    notice("epoch {}, batch {} of {}: {}\n", r.epoch + 1, r.batch + 1, r.batches, lately());
    return;
  }
  if (now - last_progress_ < between_progress && r.batch + 1 < r.batches) return;
  last_progress_ = now;
  const double left = static_cast<double>(r.batches - r.batch - 1) *
                      static_cast<double>(r.batch_per_rank);  // of one rank
  const double rate = images_per_s_ * r.batch_per_rank *
                      (r.time.value() > 0 ? 1 / (r.images.value() * r.time.value()) : 0);
  steer_terminal(
      "\r\x1b[K" +
      in_one_line(fmt::format(
          "epoch {} {} {}/{}  loss {:.3f}  accuracy {:.1f}%  {}  exposed {:.0f}%  "
          "{} left",
          r.epoch + 1, bar(static_cast<double>(r.batch + 1) / static_cast<double>(r.batches), 20),
          r.batch + 1, r.batches, loss_, 100 * accuracy_, rate_text(), 100 * exposed_,
          clock(rate > 0 ? left / rate : 0))));
  progress_shown_ = true;
}

std::string TrainingReport::rate_text() const {
  return fmt::format("{:.0f} {}/s", images_per_s_ * per_sample_, counted_);
}

std::string TrainingReport::lately() const {
  return first_ ? std::string()
                : fmt::format("loss {:.3f}, accuracy {:.1f}%, {}", loss_, 100 * accuracy_,
                              rate_text());
}

void TrainingReport::remark(const std::string& line) {
  clear_progress();
  notice("{}\n", line);
}

void TrainingReport::epoch(const runtime::EpochReport& r) {
  clear_progress();
  if (metrics_) write(epoch_line(r));
  if (quiet_) return;
  if (!titles_shown_) {
    print("epoch  train loss  train acc  test loss  test acc  skipped  {}/s  exposed     time\n",
          counted_);
    titles_shown_ = true;
  }
  print("{:>5}  {:>10.4f}  {:>8.2f}%  {:>9.4f}  {:>7.2f}%  {:>7}  {:>8.0f}  {:>6.1f}%  {:>7}\n",
        r.epoch + 1, r.training_loss, 100 * r.training_accuracy, r.test_loss, 100 * r.test_accuracy,
        r.skipped, r.images.value() * per_sample_, 100 * share(r.exposed, r.training_time),
        clock(r.training_time.value()));
  flush_output();
}

void TrainingReport::checkpoint(const std::string& path, std::int64_t iteration) {
  if (metrics_) write(runtime::checkpoint_line(path, iteration));
}

}  // namespace paceline::cli
