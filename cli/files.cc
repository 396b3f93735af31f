// Tests: tests/cli (end to end).
#include "cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "models/base/error.h"

namespace paceline::cli {
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

// Closes, and removes the temporary file unless it was renamed away.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& beside) : path_(beside + ".XXXXXX") {
    descriptor_ = ::mkstemp(path_.data());
    if (descriptor_ < 0) throw RunError("write " + beside, cause());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  [[nodiscard]] bool fill(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return ::fsync(descriptor_) == 0;
  }
  [[nodiscard]] bool become(const std::string& path) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(descriptor_, 0666 & ~mask) != 0 || ::rename(path_.c_str(), path.c_str()) != 0)
      return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

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

void check_output_path(const char* option, const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder, error))
    throw InputError({option}, "there is no folder " + folder.string(), "make it first");
  if (fs::is_directory(path, error))
    throw InputError({option}, path + " is a folder", "give the path of a file");
  if (fs::absolute(path).filename().string().size() > 240)
    throw InputError({option}, "the name is longer than 240 bytes", "give a shorter one");
  const bool exists = fs::exists(fs::status(path, error));
  if (::access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
    throw InputError({option}, path + " cannot be written: " + cause(), "give another path");
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(a), error) ==
         fs::weakly_canonical(fs::absolute(b), error);
}

void write_output_file(const std::string& path, std::string_view text) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw RunError("write " + path, "it is a directory");
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0)
    throw RunError("write " + path, cause());
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    std::ofstream out(path, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!out.flush()) throw RunError("write " + path, cause());
    return;
  }
  // A link stays a link: what it points to is replaced.
  const fs::path target = fs::is_symlink(fs::symlink_status(path, error))
                              ? fs::weakly_canonical(path, error)
                              : fs::path(path);
  TemporaryFile temporary(target.string());
  if (!temporary.fill(text) || !temporary.become(target.string()))
    throw RunError("write " + path, cause());
}

bool names_a_file(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") ||
         text.ends_with(".yml") || text.ends_with(".json") || text.ends_with(".xml");
}

}  // namespace paceline::cli
