// Aligned text tables for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/base/units.h"

namespace paceline::cli {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::right;
    // Columns above 0 are left out of a table that would be too wide, those of the highest number
    // first. A column without a title goes with the one before it.
    int least_important = 0;
    // The cells of a column of words may have several lines in a table that would be too wide. At
    // most one column does so, before any is left out.
    bool wraps = false;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // Adds a row. It has one cell for each column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Keeps these rows, in this order.
  void keep_rows(std::span<const std::size_t> rows);
  // Keeps these columns, in this order.
  void keep_columns(std::span<const std::size_t> columns);
  // Leaves out all rows between the first `head` and the last `tail`, where that makes the table
  // shorter: a row of "..." stands for them. Returns how many are left out.
  std::size_t leave_out_middle(std::size_t head, std::size_t tail);
  // The titles and the rows, with two blanks between columns and none at the end of a line. Width
  // is counted in code points, so that "µ" counts as one.
  [[nodiscard]] std::string text() const;

  // The table in at most `width` characters a line, as far as cells may have several lines and
  // columns may be left out for that.
  struct Fitted {
    std::string text;
    std::vector<std::string> left_out;  // titles, in the order of the columns
    int width = 0;

    // The line that names what is left out, and --wide; empty where nothing is.
    [[nodiscard]] std::string not_shown() const;
  };
  [[nodiscard]] Fitted fitted(int width) const;

  // All of the table as GitHub's Markdown has it, whatever its width.
  [[nodiscard]] std::string markdown() const;

  // The table in blocks of at most `width` characters a line, one below the other. Each block
  // begins with the first column and has at least one other.
  [[nodiscard]] std::string blocks(int width) const;

 private:
  // `at` is the width of each column, shown or not.
  [[nodiscard]] std::string text_of(const std::vector<std::size_t>& shown,
                                    const std::vector<std::size_t>& at) const;
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The positions of the `best` element and of the least others, the least of them first: `top` in all.
// All positions in their order where `top` is 0 or there are no more.
[[nodiscard]] std::vector<std::size_t> top_of(std::size_t top, std::span<const Seconds> times,
                                              std::size_t best);

// The line below a table of the `top` of this many strategies: how many are not shown. Empty where all are.
[[nodiscard]] std::string slower_note(std::size_t top, std::size_t strategies);

// "99.2 %"
[[nodiscard]] std::string percent(double share);
// "+12.6 %". A share that rounds to nothing has no sign.
[[nodiscard]] std::string signed_percent(double share);

// The text with each line of more than `width` characters broken at blanks. What follows on the next
// line is indented by two blanks more than the line. A word of more characters stays whole.
[[nodiscard]] std::string wrapped(const std::string& text, int width);

}  // namespace paceline::cli
