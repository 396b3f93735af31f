// Tests: tests/cli/sweep_test.py (end to end).
#include "cli/job/sweep_journal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/job/files.h"
#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::job {
namespace {

constexpr std::string_view schema = "paceline.sweep_journal/1";
constexpr std::chrono::seconds between_flushes{1};

struct Line {
  std::int64_t cells = 0;
  std::int64_t bytes = 0;
  std::string sum;
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t to = std::min(line.find(' ', from), line.size());
    words.push_back(line.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

// The whole lines of a text.
std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find('\n', from);
    if (end == std::string_view::npos) return lines;
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
}

}  // namespace

class SweepJournal::File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("open");
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void lock() const {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
      throw RunError("write " + path_, "another process writes it");
  }
  [[nodiscard]] std::int64_t size() const {
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) fail("read");
    return status.st_size;
  }
  void cut(std::int64_t bytes) const {
    if (::ftruncate(descriptor_, bytes) != 0 || ::lseek(descriptor_, bytes, SEEK_SET) < 0)
      fail("write");
  }
  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      text.remove_prefix(to_size(written));
    }
  }
  void flush() const {
    if (::fdatasync(descriptor_) != 0) fail("write");
  }
  // Bytes from `from` on, as many as there are and fit.
  [[nodiscard]] std::size_t read(std::int64_t from, std::span<char> room) const {
    const ssize_t got = ::pread(descriptor_, room.data(), room.size(), from);
    if (got < 0) fail("read");
    return to_size(got);
  }
  [[nodiscard]] std::string text() const {
    std::string text(to_size(size()), '\0');
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t got = read(static_cast<std::int64_t>(at), std::span(text).subspan(at));
      if (got == 0) break;
      at += got;
    }
    text.resize(at);
    return text;
  }

 private:
  [[noreturn]] void fail(const char* operation) const {
    throw RunError(fmt::format("{} {}", operation, path_), std::strerror(errno));
  }

  std::string path_;
  int descriptor_ = -1;
};

SweepJournal::SweepJournal(Options options)
    : options_(std::move(options)), last_(std::chrono::steady_clock::now()) {
  const std::string path = journal_of(options_.path);
  const bool is_there = std::filesystem::exists(path);
  journal_ = std::make_unique<File>(path);
  journal_->lock();
  const std::string text = is_there ? journal_->text() : std::string();
  // A process that was killed before its first line was whole has begun nothing.
  const bool has_begun = !whole_lines(text).empty();
  const std::size_t common = std::min(text.size(), schema.size());
  if (text.substr(0, common) != schema.substr(0, common))
    throw InputError({path}, "this is no journal of a sweep", "remove it to begin anew");
  if (has_begun && options_.resume)
    go_on(text);
  else if (has_begun)
    throw InputError({path}, "there is a journal of a sweep already",
                     "go on with it by --resume, or remove it");
  else
    begin();
}

SweepJournal::~SweepJournal() = default;

void SweepJournal::begin() {
  rows_ = std::make_unique<File>(options_.path);
  rows_->cut(0);
  rows_->write(options_.header);
  bytes_ = static_cast<std::int64_t>(options_.header.size());
  sum_.add(std::as_bytes(std::span(options_.header)));
  rows_->flush();
  journal_->cut(0);
  journal_->write(fmt::format("{} {}\n{} {} {}\n", schema, options_.digest, 0, bytes_,
                              runtime::to_hex(sum_.sum())));
  journal_->flush();
}

void SweepJournal::go_on(const std::string& text) {
  const std::string path = journal_of(options_.path);
  const std::vector<std::string_view> lines = whole_lines(text);
  const std::vector<std::string_view> title = words_of(lines.front());
  if (title.size() != 2 || title.front() != schema)
    throw InputError({path, 1}, "this is no journal of a sweep", "remove it to begin anew");
  if (title.back() != options_.digest)
    throw InputError({path}, "the journal belongs to another sweep, or to another version",
                     "resume with the files and options that it began with, or remove it");
  Line last;
  std::size_t bytes_of_lines = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    bytes_of_lines += lines[i].size() + 1;
    if (i == 0) continue;
    const std::vector<std::string_view> words = words_of(lines[i]);
    Line line;
    const bool is_line = words.size() == 3 && read_number(words[0], line.cells) &&
                         read_number(words[1], line.bytes) && words[2].size() == 32 &&
                         line.cells >= last.cells && line.bytes >= last.bytes &&
                         line.cells <= options_.cells;
    if (!is_line)
      throw InputError({path, static_cast<int>(i) + 1}, "the journal is damaged",
                       "remove it to begin anew");
    line.sum = words[2];
    last = std::move(line);
  }
  rows_ = std::make_unique<File>(options_.path);
  if (lines.size() == 1) return begin();
  check_rows(last.bytes, last.sum);
  rows_->cut(last.bytes);
  journal_->cut(static_cast<std::int64_t>(bytes_of_lines));
  bytes_ = last.bytes;
  finished_ = noted_ = last.cells;
}

// Reads the rows that the journal counts, and leaves their checksum in sum_.
void SweepJournal::check_rows(std::int64_t bytes, const std::string& sum) {
  std::vector<char> room(1 << 20);
  std::int64_t at = 0;
  while (at < bytes) {
    const auto wanted = to_size(std::min<std::int64_t>(bytes - at, std::ssize(room)));
    const std::size_t got = rows_->read(at, std::span(room).first(wanted));
    if (got == 0) break;
    sum_.add(std::as_bytes(std::span(room).first(got)));
    at += static_cast<std::int64_t>(got);
  }
  if (at != bytes || runtime::to_hex(sum_.sum()) != sum)
    throw InputError({options_.path},
                     fmt::format("its first {} bytes are not those that the journal counts", bytes),
                     fmt::format("remove {} to begin anew", journal_of(options_.path)));
}

void SweepJournal::add(const std::string& rows, std::int64_t cells) {
  rows_->write(rows);
  sum_.add(std::as_bytes(std::span(rows)));
  bytes_ += std::ssize(rows);
  finished_ = cells;
  const bool is_due = options_.every_cells > 0
                          ? finished_ - noted_ >= options_.every_cells
                          : std::chrono::steady_clock::now() - last_ >= between_flushes;
  if (is_due) flush();
}

void SweepJournal::flush() {
  if (noted_ == finished_) return;
  rows_->flush();
  journal_->write(fmt::format("{} {} {}\n", finished_, bytes_, runtime::to_hex(sum_.sum())));
  journal_->flush();
  noted_ = finished_;
  last_ = std::chrono::steady_clock::now();
}

}  // namespace paceline::job
