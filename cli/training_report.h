// The output of `paceline train` while it runs: a progress line on a terminal, a line every half minute on
// standard error elsewhere, a line for each epoch, and metrics as JSON lines.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "runtime/training/trainer.h"

namespace paceline::cli {

class TrainingReport final : public runtime::TrainingObserver {
 public:
  // Metrics go to the file of this path, or nowhere if it is empty. A run that goes on from a
  // checkpoint appends to the file; any other replaces it. Epoch lines go to standard output unless
  // `quiet`. Throws RunError.
  TrainingReport(const std::string& metrics_path, bool goes_on, bool quiet);
  ~TrainingReport() override;

  void start(models::NumberType arithmetic) override;
  void iteration(const runtime::IterationReport& report) override;
  void remark(const std::string& line) override;
  void epoch(const runtime::EpochReport& report) override;
  void checkpoint(const std::string& path, std::int64_t iteration) override;

  // "loss 2.303, accuracy 11.2%, 312 images/s": means of the last iterations. Empty before the first.
  [[nodiscard]] std::string lately() const;

  // Calls `say` once the training starts, with the arithmetic of its layers. `say` returns the job's
  // facts, the first line of the metrics, which is written with the second. A file of an earlier run
  // is left alone until then.
  using Start = std::function<std::string(models::NumberType arithmetic)>;
  void on_start(Start say) { on_start_ = std::move(say); }
  // Rates on the screen are of tokens, of which a sample has this many.
  void count_tokens(std::int64_t of_sample) {
    counted_ = "tokens";
    per_sample_ = static_cast<double>(of_sample);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& line);
  void clear_progress();
  [[nodiscard]] std::string rate_text() const;
  void open_metrics();

  std::string path_;
  std::unique_ptr<std::FILE, Close> metrics_;
  Start on_start_;
  std::string facts_;  // not yet written
  bool goes_on_ = false;
  bool quiet_ = false;
  bool is_terminal_ = false;
  bool progress_shown_ = false;
  bool titles_shown_ = false;
  std::chrono::steady_clock::time_point last_progress_ = std::chrono::steady_clock::now();
  std::string_view counted_ = "images";
  double per_sample_ = 1;
  double images_per_s_ = 0;  // smoothed
  double loss_ = 0;
  double accuracy_ = 0;
  double exposed_ = 0;  // share
  bool first_ = true;
};

}  // namespace paceline::cli
