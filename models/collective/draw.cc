// Tests: tests/models/draw_test.cc.
#include "models/collective/draw.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "models/collective/enumerate.h"

namespace paceline::models {
namespace {

std::string counted(std::int64_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string not_shown(int count, const char* thing) {
  return fmt::format("({} more {}{} not shown)\n", count, thing, count == 1 ? " is" : "s are");
}

std::string cell(const Schedule& schedule, int rank, int step, std::int64_t chunks) {
  constexpr std::size_t most_messages = 4;
  std::vector<std::string> messages;
  for_each_send(
      schedule, rank, step, Span<std::int64_t>{0, chunks}, [&](const Transfer<std::int64_t>& t) {
        if (t.span.size == 0) return;
        const std::string which = t.span.size == 1
                                      ? fmt::format("c{}", t.span.begin)
                                      : fmt::format("c{}-{}", t.span.begin, t.span.end() - 1);
        messages.push_back(fmt::format("{}{}>{}", which, t.reduce ? "+" : "", t.to));
      });
  const std::size_t shown = std::min(messages.size(), most_messages);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : " ") + messages[i];
  if (shown < messages.size()) text += fmt::format(" and {} more", messages.size() - shown);
  return text.empty() ? "." : text;
}

}  // namespace

std::string draw(const Schedule& schedule, const DrawOptions& options) {
  const std::int64_t natural = schedule.natural_chunks();
  const std::int64_t chunks = natural == 0 ? schedule.ranks() : natural;
  const int ranks = std::min(schedule.ranks(), options.most_ranks);
  const int steps = std::min(schedule.steps(), options.most_steps);

  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> header = {"step"};
  for (int rank = 0; rank < ranks; ++rank) header.push_back(fmt::format("rank {}", rank));
  rows.push_back(std::move(header));
  for (int step = 0; step < steps; ++step) {
    std::vector<std::string> row = {fmt::format("{}", step + 1)};
    for (int rank = 0; rank < ranks; ++rank) row.push_back(cell(schedule, rank, step, chunks));
    rows.push_back(std::move(row));
  }

  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = fmt::format("{}, {}, {}: {}\n", counted(schedule.ranks(), "rank"),
                                 counted(schedule.steps(), "step"), counted(chunks, "chunk"),
                                 schedule.description());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:>{}}", row[i], widths[i])
                     : fmt::format("  {:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (ranks < schedule.ranks()) text += not_shown(schedule.ranks() - ranks, "rank");
  if (steps < schedule.steps()) text += not_shown(schedule.steps() - steps, "step");
  text += "cN>R: chunk N goes to rank R and replaces what it holds; cN+>R: it is added there\n";
  return text;
}

}  // namespace paceline::models
