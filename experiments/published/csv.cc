// Tests: tests/experiments/published_source_test.cc.
#include "experiments/published/csv.h"

#include <fmt/core.h>

#include "models/base/error.h"

namespace paceline::experiments {
namespace {

// Reads one record after the other.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  // Passes over what has no effect. Whether there is another record.
  bool has_next() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      }
      if (!skip_line_end()) return at_ < text_.size();
    }
    return false;
  }

  CsvRecord next() {
    CsvRecord record{line_, {}};
    for (;;) {
      record.fields.push_back(peek() == '"' ? quoted() : plain());
      if (peek() == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && !skip_line_end())
        fail(line_, "text after a closing quote", "double the quotes that a quoted field holds");
      return record;
    }
  }

  [[noreturn]] void fail(int line, const std::string& problem, const std::string& remedy) const {
    throw InputError({file_, line}, problem, remedy);
  }

 private:
  // The next byte; a line feed where there is none.
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n';
  }
  [[nodiscard]] bool at_line_end() const {
    return peek() == '\n' || (peek() == '\r' && peek(1) == '\n');
  }
  bool skip_line_end() {
    if (at_ >= text_.size() || !at_line_end()) return false;
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    return true;
  }
  void check(char c) const {
    if (static_cast<unsigned char>(c) < 0x20)
      fail(line_, fmt::format("control character {:#04x}", c), "write plain text");
  }

  std::string plain() {
    std::string field;
    for (; at_ < text_.size() && !at_line_end() && text_[at_] != ','; ++at_) {
      check(text_[at_]);
      if (text_[at_] == '"')
        fail(line_, "a quote inside a field", "put the whole field into quotes, and double it");
      field += text_[at_];
    }
    return field;
  }

  std::string quoted() {
    const int first_line = line_;
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (peek(1) != '"' || at_ + 1 == text_.size()) {
          ++at_;
          return field;
        }
        ++at_;
      } else if (c == '\n') {
        ++line_;
        field += ' ';
        continue;
      } else if (c == '\r' && peek(1) == '\n') {
        continue;
      } else {
        check(c);
      }
      field += c;
    }
    fail(first_line, "a quote that is never closed", "close it");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

std::vector<CsvRecord> parse_csv(std::string_view text, const std::string& file,
                                 const std::vector<std::string>& columns) {
  Reader reader(text, file);
  if (!reader.has_next()) reader.fail(1, "an empty table", "begin with " + joined(columns));
  const CsvRecord header = reader.next();
  if (header.fields != columns)
    reader.fail(header.line, fmt::format("the header is {}", in_quotes(joined(header.fields))),
                "write " + joined(columns));
  std::vector<CsvRecord> records;
  while (reader.has_next()) {
    records.push_back(reader.next());
    const CsvRecord& record = records.back();
    if (record.fields.size() != columns.size())
      reader.fail(record.line,
                  fmt::format("{} fields, not {}", record.fields.size(), columns.size()),
                  "write " + joined(columns) + ", with quotes around a field that has a comma");
  }
  return records;
}

}  // namespace paceline::experiments
