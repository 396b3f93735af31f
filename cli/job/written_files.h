// How a file that the command wrote is told from one that somebody else did: by its first bytes. A
// command replaces the first without a word, and the second with --force alone.
#pragma once

#include <string_view>

namespace paceline::job {

// What a command writes to a file.
enum class FileKind {
  unchecked,    // who writes it looks at what is there: checkpoints, journals, runs of convergence
  document,     // what --json prints, but plans and profiles
  plan,         // (JSON)
  profile,      // (JSON)
  timeline,     // (Chrome trace)
  metrics,      // of train (JSON lines)
  rows,         // of sweep (CSV or JSON lines)
  csv,          // of --csv
  markdown,     // of --markdown
  report,       // (HTML)
  picture,      // (SVG)
  layer_plans,  // of cuDNN (JSON)
  platform,     // of SimGrid (XML)
  schedule,     // of another tool: GOAL or MSCCL XML, or a picture
  plan_export,  // of another tool: NCCL, MSCCL or Horovod
  manual_page,  // (roff)
  description,  // of a cluster or a network (YAML), which people complete: none counts as written
};

// "report of paceline", for messages.
[[nodiscard]] std::string_view noun(FileKind kind);

// How many of a file's first bytes is_ours() reads.
inline constexpr std::size_t head_bytes = 4096;
// Whether a file that begins so was written by the command as one of this kind. A file without a byte
// is anybody's, and so ours. A table (csv, markdown) need only have a line of titles: has_titles_of()
// looks at them once it is known what is to be written.
[[nodiscard]] bool is_ours(FileKind kind, std::string_view head);

// Whether a table that begins so has at least half of its titles, and three if it has as many, in
// common with `table`, as two answers to questions of one kind have. Both are CSV, or both Markdown.
[[nodiscard]] bool has_titles_of(std::string_view head, std::string_view table);

}  // namespace paceline::job
