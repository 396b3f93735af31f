// Tests: tests/cli/written_files_test.cc, tests/cli/output_files_test.py.
#include "cli/job/written_files.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace paceline::job {
namespace {

std::string_view first_line(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What follows "paceline." in the name of a JSON document's schema; empty where it names none.
std::string_view schema_of(std::string_view head) {
  if (!head.starts_with('{')) return {};
  for (const std::string_view start :
       {std::string_view("\"schema\": \"paceline."), std::string_view("\"schema\":\"paceline.")}) {
    const std::size_t at = head.find(start);
    if (at != std::string_view::npos) return head.substr(at + start.size());
  }
  return {};
}

bool is_document(std::string_view head) {
  const std::string_view schema = schema_of(head);
  return !schema.empty() && !schema.starts_with("plan/") && !schema.starts_with("profile/") &&
         !schema.starts_with("cudnn-plans/");
}

// Chrome traces of other tools begin with their events, or have no otherData.
bool is_timeline(std::string_view head) {
  return head.starts_with("{\"displayTimeUnit\":\"ms\",\"otherData\":{") &&
         (has(head, "\"provenance\":\"") || has(head, "\"schema\":\"paceline."));
}

// Whether a file begins so, or was cut before that by a process that was killed.
bool begins(std::string_view head, std::string_view start) {
  return head.starts_with(start) || start.starts_with(head);
}

bool is_picture(std::string_view head) {
  const std::string_view line = first_line(head);
  return line.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"") &&
         (has(line, " font-family=\"sans-serif\">") ||
          has(line, " font-family=\"Helvetica, Arial, sans-serif\" "));
}

// "# alexnet, hybrid, 4 ranks": how exports of plans begin where their format has comments.
bool names_ranks(std::string_view line) {
  return line.ends_with(" ranks") || line.ends_with(" rank");
}

bool is_msccl(std::string_view head) {
  const std::string_view line = first_line(head);
  return line.starts_with("<algo name=\"") && has(line, " rank") && has(line, "\" proto=\"");
}

bool is_goal(std::string_view head) {
  return head.starts_with("// GOAL, for LogGOPSim and ATLAHS; written by paceline export.");
}

bool is_plan_export(std::string_view head) {
  return head.starts_with("paceline.") || schema_of(head).starts_with("nccl-config/") ||
         (head.starts_with("# ") && names_ranks(first_line(head))) || is_msccl(head);
}

// The words between commas or, in Markdown, between bars.
std::vector<std::string> titles_of(std::string_view head) {
  const std::string_view line = first_line(head);
  const char between = line.starts_with('|') ? '|' : ',';
  std::vector<std::string> titles;
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t to = std::min(line.find(between, from), line.size());
    std::string_view title = line.substr(from, to - from);
    while (title.starts_with(' ')) title.remove_prefix(1);
    while (title.ends_with(' ')) title.remove_suffix(1);
    titles.emplace_back(title);
    from = to + 1;
  }
  if (between == '|') std::erase(titles, "");
  return titles;
}

bool is_key(std::string_view title) {
  return !title.empty() && std::ranges::all_of(title, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

bool is_csv(std::string_view head) {
  const std::vector<std::string> titles = titles_of(head);
  return titles.size() > 1 && std::ranges::all_of(titles, is_key);
}

bool is_markdown(std::string_view head) {
  const std::size_t end = head.find('\n');
  return head.starts_with("| ") && end != std::string_view::npos &&
         head.substr(end + 1).starts_with("|---");
}

}  // namespace

std::string_view noun(FileKind kind) {
  switch (kind) {
    case FileKind::unchecked:
      return "file of paceline";
    case FileKind::document:
      return "document of paceline";
    case FileKind::plan:
      return "plan of paceline";
    case FileKind::profile:
      return "profile of paceline";
    case FileKind::timeline:
      return "timeline of paceline";
    case FileKind::metrics:
      return "metrics of paceline";
    case FileKind::rows:
      return "rows of a sweep of paceline";
    case FileKind::csv:
    case FileKind::markdown:
      return "such table of paceline";
    case FileKind::report:
      return "report of paceline";
    case FileKind::picture:
      return "picture of paceline";
    case FileKind::layer_plans:
      return "plans of cuDNN by paceline";
    case FileKind::platform:
      return "platform of paceline";
    case FileKind::schedule:
    case FileKind::plan_export:
      return "export of paceline";
    case FileKind::manual_page:
      return "manual page of paceline";
    case FileKind::description:
      return "file to replace unasked, because people complete descriptions";
  }
  return "";
}

bool is_ours(FileKind kind, std::string_view head) {
  if (head.empty()) return true;
  switch (kind) {
    case FileKind::unchecked:
      return true;
    case FileKind::document:
      return is_document(head);
    case FileKind::plan:
      return schema_of(head).starts_with("plan/");
    case FileKind::profile:
      return schema_of(head).starts_with("profile/");
    case FileKind::timeline:
      return is_timeline(head);
    case FileKind::metrics:
      return begins(head, "{\"event\"");
    case FileKind::rows:
      return begins(head, "cell,") || begins(head, "{\"cell\":");
    case FileKind::csv:
      return is_csv(head);
    case FileKind::markdown:
      return is_markdown(head);
    case FileKind::report:
      return head.starts_with("<!DOCTYPE html>") &&
             has(head, "<meta name=\"generator\" content=\"paceline\">");
    case FileKind::picture:
      return is_picture(head);
    case FileKind::layer_plans:
      return schema_of(head).starts_with("cudnn-plans/");
    case FileKind::platform:
      return has(head, "<!DOCTYPE platform ") &&
             has(head, "<!-- Times are right under network/model:CM02, ");
    case FileKind::schedule:
      return is_goal(head) || is_msccl(head) || is_picture(head);
    case FileKind::plan_export:
      return is_plan_export(head);
    case FileKind::manual_page:
      return head.starts_with(".\\\" Written by `paceline manual`");
    case FileKind::description:
      return false;
  }
  return false;
}

bool has_titles_of(std::string_view head, std::string_view table) {
  if (head.empty()) return true;
  const std::vector<std::string> theirs = titles_of(head);
  const std::vector<std::string> ours = titles_of(table);
  const std::set<std::string> known(ours.begin(), ours.end());
  const auto common = std::ranges::count_if(
      theirs, [&](const std::string& title) { return known.contains(title); });
  // A single title such as "name" is in tables of anybody.
  constexpr std::ptrdiff_t telling = 3;
  return head.starts_with('|') == table.starts_with('|') && 2 * common >= std::ssize(theirs) &&
         common >= std::min(telling, std::ssize(theirs));
}

}  // namespace paceline::job
