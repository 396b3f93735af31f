// Aligned text tables for people.
#pragma once

#include <string>
#include <vector>

namespace paceline::cli {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell for each column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Rows with two blanks between columns, a title row, no blanks at the end of a line. Width is
  // counted in code points, so that "µ" is one.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace paceline::cli
