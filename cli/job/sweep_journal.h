// The rows of a sweep in a file, and a journal beside it by which a sweep that was killed goes on.
//
// FILE.journal is text: a line with its schema and the sweep's digest, then a line for each time that
// rows were brought to disk: how many cells are finished, how many bytes of FILE they and the header
// take, and the checksum of these bytes. Rows are on disk (fdatasync) before the line that counts them
// is written, and the line is before work goes on. So whatever is killed when, FILE has at least what
// the last whole line says; what it has beyond that is cut off and computed again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/training/checksum.h"

namespace paceline::job {

class SweepJournal {
 public:
  struct Options {
    std::string path;        // of the rows
    std::string digest;      // of the sweep and the format of its rows
    std::string header;      // what stands before the first row
    std::int64_t cells = 0;  // of the whole sweep
    bool resume = false;
    // Brings rows to disk after this many cells; 0: about once a second.
    std::int64_t every_cells = 0;
  };

  // Begins, or goes on where the journal ends if it is to resume and there is one. A last line that is
  // cut short is dropped. Throws InputError if there is a journal of a sweep that is not finished and
  // that is not to be resumed; if the journal is of another sweep, damaged, or FILE is not what it
  // says; RunError if a file cannot be written, or another process writes it.
  explicit SweepJournal(Options options);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // The cells whose rows are there.
  [[nodiscard]] std::int64_t finished() const { return finished_; }
  // Adds the rows up to a cell. Throws RunError.
  void add(const std::string& rows, std::int64_t cells);
  // Brings all rows to disk. Throws RunError.
  void flush();

  [[nodiscard]] static std::string journal_of(const std::string& path) { return path + ".journal"; }

 private:
  class File;

  void begin();
  void go_on(const std::string& journal);
  void check_rows(std::int64_t bytes, const std::string& sum);

  Options options_;
  std::unique_ptr<File> rows_;
  std::unique_ptr<File> journal_;
  runtime::Checksummer sum_;
  std::int64_t bytes_ = 0;
  std::int64_t finished_ = 0;
  std::int64_t noted_ = 0;  // cells that the journal's last line counts
  std::chrono::steady_clock::time_point last_;
};

}  // namespace paceline::job
