// Reading and writing whole files that the user named.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::job {

// The text of a file that the user named. Throws InputError if it cannot be read, is a directory or
// is larger than 16 MiB, or 256 MiB if it is XML: a platform lists a route for every two hosts.
[[nodiscard]] std::string read_input_file(const std::string& path);
// The same with another limit, for traces.
[[nodiscard]] std::string read_large_file(const std::string& path, std::uintmax_t largest_mib);
// The same of a file that gzip may have packed, unpacked; the limit is that of either.
[[nodiscard]] std::string read_unpacked_file(const std::string& path, std::uintmax_t largest_mib);

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
// folder is not there or cannot be written, or it is a folder. Throws InputError that names the
// option.
void check_output_path(const char* option, const std::string& path);

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
};

// Refuses, before any work, outputs that check_output_path refuses or that are another of the
// paths: writing one would destroy the other. Throws InputError that names the option.
void check_paths(const std::vector<GivenPath>& paths);

// Whether two paths lead to one file, there or not; an empty one leads to none.
[[nodiscard]] bool is_same_file(const std::string& a, const std::string& b);

// Whether the text means a file, by a slash or an ending such as .yaml, and no name of a catalogue.
[[nodiscard]] bool names_a_file(std::string_view text);

}  // namespace paceline::job
