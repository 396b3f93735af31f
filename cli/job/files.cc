// Tests: tests/cli (end to end).
#include "cli/job/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "models/base/error.h"
#include "runtime/training/atomic_file.h"
#include "runtime/training/data/gzip.h"

namespace paceline::job {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_input_mib = 16;
constexpr std::uintmax_t largest_xml_mib = 256;

InputError too_large(const std::string& path, std::uintmax_t largest_mib) {
  return {{path},
          "the file is larger than " + std::to_string(largest_mib) + " MiB",
          "give a description, not data"};
}

std::string cause() {
  return std::strerror(errno);
}

}  // namespace

std::string read_input_file(const std::string& path) {
  return read_large_file(path, path.ends_with(".xml") ? largest_xml_mib : largest_input_mib);
}

std::string read_large_file(const std::string& path, std::uintmax_t largest_mib) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw InputError({path}, "no such file", "give the path of a file that exists");
  if (fs::is_directory(status))
    throw InputError({path}, "this is a directory", "give the path of a file");
  const std::uintmax_t largest_input = largest_mib << 20;
  if (fs::is_regular_file(status) && fs::file_size(path, error) > largest_input)
    throw too_large(path, largest_mib);
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (fs::is_regular_file(status)) text.reserve(fs::file_size(path, error) + 1);
  char buffer[1 << 16];
  while (file && text.size() <= largest_input) {
    file.read(buffer, sizeof buffer);
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof() && text.size() <= largest_input)
    throw InputError({path}, "the file cannot be read", cause());
  if (text.size() > largest_input) throw too_large(path, largest_mib);
  return text;
}

std::string read_unpacked_file(const std::string& path, std::uintmax_t largest_mib) {
  std::string text = read_large_file(path, largest_mib);
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()),
                                            text.size());
  if (!runtime::is_gzip(bytes)) return text;
  const runtime::ByteVector unpacked =
      runtime::inflated(bytes, path, static_cast<std::size_t>(largest_mib << 20));
  return {unpacked.begin(), unpacked.end()};
}

void check_output_path(const char* option, const std::string& path) {
  std::error_code error;
  const fs::path target = runtime::linked_file(path);
  if (fs::is_symlink(fs::symlink_status(target, error)))
    throw InputError({option}, path + " is a link that leads nowhere", "give the path of a file");
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

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(a), error) ==
         fs::weakly_canonical(fs::absolute(b), error);
}

void check_paths(const std::vector<GivenPath>& paths) {
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
