// Tests: tests/cli/table_test.cc.
#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::cli {
namespace {

constexpr std::size_t between_columns = 2;
// A column of words is not narrowed below this.
constexpr std::size_t least_wrapped = 16;

std::size_t width(const std::string& text) {
  return to_size(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// The words of a text in lines of at most `most` characters, or of one longer word.
std::vector<std::string> lines_of(const std::string& text, std::size_t most) {
  if (width(text) <= most) return {text};
  std::vector<std::string> lines(1);
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    if (!lines.back().empty() && width(lines.back()) + 1 + width(word) > most) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    from = end + 1;
  }
  return lines;
}

// The text with a blank in each word after every `most` characters.
std::string with_cut_words(const std::string& text, std::size_t most) {
  std::string cut;
  std::size_t length = 0;
  for (const char c : text) {
    const bool is_first_byte = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (is_first_byte && c != ' ' && length == most) {
      cut += ' ';
      length = 0;
    }
    if (is_first_byte) length = c == ' ' ? 0 : length + 1;
    cut += c;
  }
  return cut;
}

}  // namespace

void Table::keep_rows(std::span<const std::size_t> rows) {
  std::vector<std::vector<std::string>> kept;
  for (const std::size_t i : rows) kept.push_back(rows_[i]);
  rows_ = std::move(kept);
}

void Table::keep_columns(std::span<const std::size_t> columns) {
  const auto keep = [&](auto& list) {
    std::remove_reference_t<decltype(list)> kept;
    for (const std::size_t i : columns) kept.push_back(list[i]);
    list = std::move(kept);
  };
  keep(columns_);
  for (auto& row : rows_) keep(row);
}

std::size_t Table::leave_out_middle(std::size_t head, std::size_t tail) {
  if (rows_.size() <= head + tail + 1) return 0;
  const std::size_t left_out = rows_.size() - head - tail;
  const auto middle = rows_.begin() + static_cast<std::ptrdiff_t>(head);
  rows_.erase(middle + 1, middle + static_cast<std::ptrdiff_t>(left_out));
  middle->assign(columns_.size(), "");
  middle->front() = "...";
  return left_out;
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = width(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
  }
  return widths;
}

std::string Table::text_of(const std::vector<std::size_t>& shown,
                           const std::vector<std::size_t>& at) const {
  std::string text;
  const auto add_row = [&](const auto& cell_of) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (const std::size_t i : shown) {
      cells.push_back(columns_[i].wraps ? lines_of(with_cut_words(cell_of(i), at[i]), at[i])
                                        : std::vector<std::string>{cell_of(i)});
      height = std::max(height, cells.back().size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::string line;
      for (std::size_t k = 0; k < shown.size(); ++k) {
        const std::string cell = h < cells[k].size() ? cells[k][h] : "";
        const std::size_t missing = at[shown[k]] - std::min(at[shown[k]], width(cell));
        const std::string blanks(missing, ' ');
        if (k > 0) line += std::string(between_columns, ' ');
        line += columns_[shown[k]].align == Align::right ? blanks + cell : cell + blanks;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  };
  add_row([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_)
    add_row([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string Table::text() const {
  std::vector<std::size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return text_of(all, widths());
}

Table::Fitted Table::fitted(int width) const {
  const auto most = to_size(width);
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  std::vector<std::size_t> at = widths();
  const auto total = [&] {
    std::size_t sum = between_columns * (shown.size() - 1);
    for (const std::size_t i : shown) sum += at[i];
    return sum;
  };
  for (std::size_t i = 0; i < columns_.size() && total() > most; ++i) {
    if (!columns_[i].wraps || at[i] <= least_wrapped) continue;
    at[i] = std::max(least_wrapped, at[i] - std::min(at[i], total() - most));
    break;
  }
  std::vector<std::size_t> left_out;
  while (total() > most) {
    const auto least = std::max_element(shown.begin(), shown.end(), [&](auto a, auto b) {
      return columns_[a].least_important < columns_[b].least_important;
    });
    if (columns_[*least].least_important == 0) break;
    left_out.push_back(*least);
    auto end = least + 1;
    while (end != shown.end() && columns_[*end].title.empty()) ++end;
    shown.erase(least, end);
  }
  std::sort(left_out.begin(), left_out.end());
  Fitted fitted{text_of(shown, at), {}, width};
  for (const std::size_t i : left_out) fitted.left_out.push_back(columns_[i].title);
  return fitted;
}

std::string Table::Fitted::not_shown() const {
  if (left_out.empty()) return {};
  return fmt::format("not shown in {} columns: {} (--wide shows them)\n", width,
                     fmt::join(left_out, ", "));
}

std::string Table::markdown() const {
  std::string text;
  const auto add_row = [&](const auto& cell_of) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      text += "| ";
      for (const char c : cell.substr(std::min(cell.find_first_not_of(' '), cell.size())))
        text += c == '|' ? std::string("\\|") : std::string(1, c);
      text += " ";
    }
    text += "|\n";
  };
  add_row([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const Column& column : columns_) text += column.align == Align::right ? "|---:" : "|---";
  text += "|\n";
  for (const auto& row : rows_)
    add_row([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string Table::blocks(int width) const {
  const std::vector<std::size_t> all = widths();
  std::string text;
  std::size_t next = 1;
  while (next < columns_.size()) {
    std::vector<std::size_t> shown = {0};
    std::size_t total = all[0];
    while (next < columns_.size() &&
           (shown.size() == 1 || total + between_columns + all[next] <= to_size(width))) {
      total += between_columns + all[next];
      shown.push_back(next++);
    }
    text += (text.empty() ? "" : "\n") + text_of(shown, all);
  }
  return text;
}

std::vector<std::size_t> top_of(std::size_t top, std::span<const Seconds> times, std::size_t best) {
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (top == 0 || top >= order.size()) return order;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (a == best || b == best) return a == best && b != best;
    return times[a] < times[b];
  });
  order.resize(top);
  return order;
}

std::string slower_note(std::size_t top, std::size_t strategies) {
  if (top == 0 || top >= strategies) return {};
  return fmt::format("not shown: {} strategies that take longer (without --top all are shown)\n",
                     strategies - top);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string signed_percent(double share) {
  const std::string text = fmt::format("{:+.1f} %", 100 * share);
  return text == "-0.0 %" || text == "+0.0 %" ? "0.0 %" : text;
}

std::string wrapped(const std::string& text, int most) {
  std::string out;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t room = to_size(most) - std::min(to_size(most), indent + 2);
    if (width(line) <= to_size(most)) {
      out += line;
    } else {
      const std::vector<std::string> lines = lines_of(line.substr(indent), room);
      for (std::size_t i = 0; i < lines.size(); ++i)
        out += (i == 0 ? "" : "\n") + std::string(indent + (i == 0 ? 0 : 2), ' ') + lines[i];
    }
    if (end < text.size()) out += "\n";
    from = end + 1;
  }
  return out;
}

}  // namespace paceline::cli
