// Tests: tests/cli (end to end).
#include "cli/job/files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/training/atomic_file.h"
#include "runtime/training/data/gzip.h"

namespace paceline::job {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_input_mib = 16;
constexpr std::uintmax_t largest_xml_mib = 256;
constexpr std::uintmax_t largest_trace_mib = 1024;
constexpr std::uintmax_t largest_piped_trace_mib = 256;

// Of pipes and devices.
constexpr std::size_t head_to_check = std::size_t{1} << 20;
constexpr std::size_t longest_value = std::size_t{4} << 20;

// gzip packs traces to a tenth or a twentieth. What comes to 200 times as much is no trace.
constexpr std::size_t most_unpacking = 200;
constexpr std::size_t least_unpacked_limit = std::size_t{64} << 20;

InputError too_large(const std::string& path, std::uintmax_t largest_mib) {
  return {{path},
          "the file is larger than " + std::to_string(largest_mib) + " MiB",
          "give a description, not data"};
}

std::string cause() {
  return std::strerror(errno);
}

bool is_gzip(std::string_view text) {
  return runtime::is_gzip({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// Follows what a pipe or a device brings, and refuses it before it fills the memory.
class Unsized {
 public:
  Unsized(const std::string& path, const HeadCheck& check) : path_(path), check_(check) {}

  // `text` is all that came, of which the last `added` bytes are new.
  void look(const std::string& text, std::size_t added) {
    if (is_gzip(text)) return;
    const std::string_view piece = std::string_view(text).substr(text.size() - added);
    const bool is_utf_16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
    if (!is_utf_16 && piece.find('\0') != std::string_view::npos)
      throw InputError({path_}, "this is no text: it has a NUL byte", "give a text file");
    const std::size_t end = piece.find_last_of("\n,:{}[]<>");
    value_ = end == std::string_view::npos ? value_ + added : added - end;
    if (value_ > longest_value)
      throw InputError({path_}, "4 MiB without the end of a line or of a value",
                       "give a text file");
    if (check_ && !is_checked_ && text.size() >= head_to_check) {
      is_checked_ = true;
      check_(text);
    }
  }

 private:
  const std::string& path_;
  const HeadCheck& check_;
  std::size_t value_ = 0;  // bytes since the end of one
  bool is_checked_ = false;
};

// The text of a file of at most this many MiB, or of a pipe or device of at most this many others.
std::string read_text(const std::string& path, std::uintmax_t largest_mib,
                      std::uintmax_t largest_piped_mib, const HeadCheck& check) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw InputError({path}, "no such file", "give the path of a file that exists");
  if (fs::is_directory(status))
    throw InputError({path}, "this is a directory", "give the path of a file");
  const bool has_size = fs::is_regular_file(status);
  if (!has_size) largest_mib = largest_piped_mib;
  const std::uintmax_t largest_input = largest_mib << 20;
  if (has_size && fs::file_size(path, error) > largest_input) throw too_large(path, largest_mib);
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (has_size) text.reserve(fs::file_size(path, error) + 1);
  Unsized unsized(path, check);
  char buffer[1 << 16];
  while (file && text.size() <= largest_input) {
    file.read(buffer, sizeof buffer);
    const auto added = to_size(file.gcount());
    text.append(buffer, added);
    if (!has_size) unsized.look(text, added);
  }
  if (!file.eof() && text.size() <= largest_input)
    throw InputError({path}, "the file cannot be read", cause());
  if (text.size() > largest_input) throw too_large(path, largest_mib);
  return text;
}

// The first bytes of a file.
std::string head_of(const std::string& path) {
  std::string head(head_bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return "a file that cannot be read";
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(to_size(file.gcount()));
  return head;
}

[[noreturn]] void refuse_to_replace(const char* option, const std::string& path, FileKind kind) {
  throw InputError({option}, path + ": exists and is no " + std::string(noun(kind)),
                   "choose another name, or add --force");
}

}  // namespace

std::string read_input_file(const std::string& path) {
  const std::uintmax_t largest = path.ends_with(".xml") ? largest_xml_mib : largest_input_mib;
  return read_text(path, largest, largest, {});
}

std::string read_trace_file(const std::string& path, const HeadCheck& check) {
  std::string text = read_text(path, largest_trace_mib, largest_piped_trace_mib, check);
  if (!is_gzip(text)) return text;
  const std::size_t most = std::min(std::max(least_unpacked_limit, most_unpacking * text.size()),
                                    to_size(largest_trace_mib << 20));
  const runtime::ByteVector unpacked = runtime::inflated(
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, path, most);
  return {unpacked.begin(), unpacked.end()};
}

void check_output_path(const char* option, const std::string& path) {
  std::error_code error;
  const fs::path target = runtime::linked_file(path);
  if (fs::is_symlink(fs::symlink_status(target, error)))
    throw InputError({option}, path + " is a link that leads in a circle",
                     "give the path of a file");
  const fs::path folder = fs::absolute(target).parent_path();
  if (!fs::is_directory(folder, error))
    throw InputError({option}, "there is no folder " + folder.string(), "make it first");
  if (fs::is_directory(path, error))
    throw InputError({option}, path + " is a folder", "give the path of a file");
  if (fs::absolute(target).filename().string().size() > 240)
    throw InputError({option}, "the name is longer than 240 bytes", "give a shorter one");
  const bool exists = fs::exists(fs::status(path, error));
  if (::access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
    throw InputError({option}, path + " cannot be written: " + cause(), "give another path");
}

void check_output_folder(const char* option, const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw InputError({option}, "there is no folder " + path, "make it first");
  if (!fs::is_directory(status))
    throw InputError({option}, path + " is no folder", "give the path of a folder");
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    throw InputError({option}, path + " cannot be written: " + cause(), "give another folder");
}

void check_replaced(const char* option, const std::string& path, FileKind kind, Replace replace) {
  std::error_code error;
  if (replace == Replace::anything || kind == FileKind::unchecked ||
      !fs::is_regular_file(fs::status(path, error)))
    return;
  if (!is_ours(kind, head_of(path))) refuse_to_replace(option, path, kind);
}

void check_replaced_table(const char* option, const std::string& path, std::string_view table,
                          Replace replace) {
  std::error_code error;
  if (replace == Replace::anything || !fs::is_regular_file(fs::status(path, error))) return;
  if (!has_titles_of(head_of(path), table)) refuse_to_replace(option, path, FileKind::csv);
}

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(a), error) ==
         fs::weakly_canonical(fs::absolute(b), error);
}

void check_paths(const std::vector<GivenPath>& paths, Replace replace) {
  for (const GivenPath& output : paths) {
    if (output.path.empty() || output.use != PathUse::output) continue;
    check_output_path(output.option, output.path);
    for (const GivenPath& other : paths) {
      if (&other == &output || other.path.empty()) continue;
      if (other.use == PathUse::name_or_input && !names_a_file(other.path)) continue;
      if (is_same_file(output.path, other.path))
        throw InputError({output.option}, output.path + " is " + other.option + " too",
                         "give each a file of its own");
    }
    check_replaced(output.option, output.path, output.kind, replace);
  }
}

void write_output_file(const std::string& path, std::string_view text) {
  write_output_file(path, [&](const TextSink& sink) { sink(text); });
}

void write_output_file(const std::string& path,
                       const std::function<void(const TextSink&)>& produce) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw RunError("write " + path, "it is a directory");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (::access(path.c_str(), W_OK) != 0) throw RunError("write " + path, cause());
    std::ofstream out(path, std::ios::binary);
    produce([&](std::string_view piece) {
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
      if (!out) throw RunError("write " + path, cause());
    });
    if (!out.flush()) throw RunError("write " + path, cause());
    return;
  }
  runtime::AtomicFile file(path, runtime::Writers::many);
  std::uint64_t offset = 0;
  produce([&](std::string_view piece) {
    file.write_at(offset, std::as_bytes(std::span(piece)));
    offset += piece.size();
  });
  file.commit();
}

bool names_a_file(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") ||
         text.ends_with(".yml") || text.ends_with(".json") || text.ends_with(".xml");
}

}  // namespace paceline::job
