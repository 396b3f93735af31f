// Tests: tests/cli/table_test.cc.
#include "cli/table.h"

#include <algorithm>
#include <numeric>

namespace paceline::cli {
namespace {

constexpr std::size_t between_columns = 2;

std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = width(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
  }
  return widths;
}

std::string Table::text_of(const std::vector<std::size_t>& shown) const {
  const std::vector<std::size_t> all = widths();
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (const std::size_t i : shown) {
      const std::string& cell = cell_of(i);
      const std::string blanks(all[i] - width(cell), ' ');
      if (i != shown.front()) line += std::string(between_columns, ' ');
      line += columns_[i].align == Align::right ? blanks + cell : cell + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_)
    add_line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string Table::text() const {
  std::vector<std::size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return text_of(all);
}

Table::Fitted Table::fitted(int width) const {
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  const std::vector<std::size_t> all = widths();
  const auto total = [&] {
    std::size_t sum = between_columns * (shown.size() - 1);
    for (const std::size_t i : shown) sum += all[i];
    return sum;
  };
  std::vector<std::size_t> left_out;
  while (total() > static_cast<std::size_t>(width)) {
    const auto least = std::max_element(shown.begin(), shown.end(), [&](auto a, auto b) {
      return columns_[a].least_important < columns_[b].least_important;
    });
    if (columns_[*least].least_important == 0) break;
    left_out.push_back(*least);
    shown.erase(least);
  }
  std::sort(left_out.begin(), left_out.end());
  Fitted fitted{text_of(shown), {}};
  for (const std::size_t i : left_out) fitted.left_out.push_back(columns_[i].title);
  return fitted;
}

std::string Table::blocks(int width) const {
  const std::vector<std::size_t> all = widths();
  std::string text;
  std::size_t next = 1;
  while (next < columns_.size()) {
    std::vector<std::size_t> shown = {0};
    std::size_t total = all[0];
    while (next < columns_.size() && (shown.size() == 1 || total + between_columns + all[next] <=
                                                               static_cast<std::size_t>(width))) {
      total += between_columns + all[next];
      shown.push_back(next++);
    }
    text += (text.empty() ? "" : "\n") + text_of(shown);
  }
  return text;
}

}  // namespace paceline::cli
