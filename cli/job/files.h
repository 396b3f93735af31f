// Reading and writing whole files that the user named.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/job/written_files.h"

namespace paceline::job {

// The text of a file that the user named. Throws InputError if it cannot be read, is a directory or
// is larger than 16 MiB, or 256 MiB if it is XML: a platform lists a route for every two hosts.
//
// A pipe or a device may have no end. Its text is refused as soon as it has a NUL byte or 4 MiB
// without an end of a line or of a value.
[[nodiscard]] std::string read_input_file(const std::string& path);

// Looks at the first MiB of a text, and throws InputError where that shows that all is to be refused.
using HeadCheck = std::function<void(std::string_view head)>;
// The same of a trace that gzip may have packed, unpacked. The limit is 1 GiB, of a pipe or device
// 256 MiB, and unpacked at most 64 MiB or, if that is more, 200 times the packed size. Of a pipe or
// device, `check` is called before the rest is read.
[[nodiscard]] std::string read_trace_file(const std::string& path, const HeadCheck& check);

// Writes all of `text` or leaves the path as it was: to a temporary file beside it, then fsync and
// rename. A path that exists and is no regular file (a pipe, /dev/null) is written to directly.
// Throws RunError.
void write_output_file(const std::string& path, std::string_view text);

// Takes a text piece by piece.
using TextSink = std::function<void(std::string_view)>;
// The same for a text that `produce` gives to the sink piece by piece, so that it is never held as a
// whole. What `produce` throws leaves the path as it was.
void write_output_file(const std::string& path,
                       const std::function<void(const TextSink&)>& produce);

// Refuses, before any work, a path that write_output_file or a checkpoint could not write: its
// folder is not there or cannot be written, it is a folder, or a link that leads in a circle. A link
// that leads to a file that is not there yet is written through, as any other. Throws InputError that
// names the option.
void check_output_path(const char* option, const std::string& path);
// The same of a folder that is there and that files are to be written into.
void check_output_folder(const char* option, const std::string& path);

// Which files may be replaced.
enum class Replace {
  ours,      // those that the command wrote as one of the same kind (written_files.h)
  anything,  // any, with --force
};
[[nodiscard]] inline Replace replaces(bool force) {
  return force ? Replace::anything : Replace::ours;
}

// Refuses a file that is there and must not be replaced. Throws InputError that names the option.
void check_replaced(const char* option, const std::string& path, FileKind kind, Replace replace);
// Refuses to replace a table by one of other columns: tables have no mark by which they are known.
void check_replaced_table(const char* option, const std::string& path, std::string_view table,
                          Replace replace);

enum class PathUse {
  output,
  input,
  name_or_input,  // of the catalogue, where it does not look like a file
};

// A path as an option has it. An empty one is not given.
struct GivenPath {
  const char* option;
  std::string path;
  PathUse use = PathUse::input;
  FileKind kind = FileKind::unchecked;  // of an output
};
// The path of an option that writes a file.
[[nodiscard]] inline GivenPath output_path(const char* option, std::string path, FileKind kind) {
  return {option, std::move(path), PathUse::output, kind};
}

// Refuses, before any work, outputs that check_output_path or check_replaced refuses or that are
// another of the paths: writing one would destroy the other. Throws InputError that names the option.
void check_paths(const std::vector<GivenPath>& paths, Replace replace);

// Whether two paths lead to one file, there or not; an empty one leads to none.
[[nodiscard]] bool is_same_file(const std::string& a, const std::string& b);

// Whether the text means a file, by a slash or an ending such as .yaml, and no name of a catalogue.
[[nodiscard]] bool names_a_file(std::string_view text);

}  // namespace paceline::job
