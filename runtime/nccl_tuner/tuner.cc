// Tests: tests/runtime/nccl_tuner/tuner_plugin_test.cc.
#include "runtime/nccl_tuner/tuner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace paceline::nccl_tuner {
namespace {

constexpr const char* variable = "PACELINE_NCCL_TUNER_FILE";

struct Text {
  char* bytes = nullptr;
  std::size_t size = 0;
};

// All of a regular file; else says why not. What it returned is freed by the caller.
const char* read_all(const char* path, Text& text) noexcept {
  // A pipe must not hold up the job, so it is not waited for.
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno == ENOENT ? "there is no such file" : "cannot be opened";
  struct stat status {};
  const char* wrong = nullptr;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    wrong = "is no file";
  } else if (status.st_size < 0 || static_cast<std::size_t>(status.st_size) > most_file_bytes) {
    wrong = "is larger than 1 MiB";
  } else {
    const std::size_t room = most_file_bytes + 1;  // the file may grow meanwhile
    text.bytes = static_cast<char*>(std::malloc(room));
    if (text.bytes == nullptr) wrong = "there is no memory for it";
    while (wrong == nullptr) {
      const ssize_t read_bytes = read(file, text.bytes + text.size, room - text.size);
      if (read_bytes < 0 && errno == EINTR) continue;
      if (read_bytes < 0) wrong = "cannot be read";
      if (read_bytes <= 0) break;
      text.size += static_cast<std::size_t>(read_bytes);
      if (text.size == room) wrong = "is larger than 1 MiB";
    }
  }
  close(file);
  return wrong;
}

// The rules of one communicator.
Tuner* rules_for(const TunerFile& file, std::size_t ranks, std::size_t nodes, int& count) noexcept {
  count = 0;
  const auto is_ours = [&](const Rule& rule) { return rule.ranks == ranks && rule.nodes == nodes; };
  for (int i = 0; i < file.rule_count; ++i) count += is_ours(file.rules[i]) ? 1 : 0;
  if (count == 0) return nullptr;
  auto* tuner = static_cast<Tuner*>(
      std::calloc(1, sizeof(Tuner) + static_cast<std::size_t>(count) * sizeof(Rule)));
  if (tuner == nullptr) return nullptr;
  int next = 0;
  int function = 0;
  for (int i = 0; i < file.rule_count; ++i) {
    if (!is_ours(file.rules[i])) continue;
    while (function < file.rules[i].function) tuner->first[++function] = next;
    tuner->rules[next++] = file.rules[i];
  }
  while (function < functions) tuner->first[++function] = next;
  return tuner;
}

int replace_constants(const TunerFile& file, std::size_t ranks, std::size_t nodes,
                      Constants* constants) noexcept {
  int count = 0;
  for (int i = 0; i < file.constant_count; ++i) {
    const Constant& constant = file.constants[i];
    if (constant.ranks != ranks || constant.nodes != nodes) continue;
    ++count;
    if (constants == nullptr) continue;
    std::memcpy(reinterpret_cast<char*>(constants) + constant.slot * sizeof(double),
                &constant.value, sizeof(double));
  }
  return count;
}

}  // namespace

Tuner* make_tuner(std::size_t ranks, std::size_t nodes, Logger log, Constants* constants) noexcept {
  const auto say = [log](int level, const char* format, auto... values) {
    if (log != nullptr) log(level, log_tuning, __FILE__, __LINE__, format, values...);
  };
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == 0) {
    say(log_warning, "paceline tuner: %s names no file; NCCL decides", variable);
    return nullptr;
  }
  Text text;
  auto* file = static_cast<TunerFile*>(std::malloc(sizeof(TunerFile)));
  const char* unread = file == nullptr ? "there is no memory for it" : read_all(path, text);
  const Fault fault = unread == nullptr ? parse(text.bytes, text.size, *file) : Fault{0, unread};
  Tuner* tuner = nullptr;
  if (fault.what != nullptr && fault.line > 0) {
    say(log_warning, "paceline tuner: %s:%d: %s; NCCL decides", path, fault.line, fault.what);
  } else if (fault.what != nullptr) {
    say(log_warning, "paceline tuner: %s: %s; NCCL decides", path, fault.what);
  } else {
    int rules = 0;
    tuner = rules_for(*file, ranks, nodes, rules);
    const int replaced = replace_constants(*file, ranks, nodes, constants);
    say(log_info,
        "paceline tuner: %s, digest %016llx, plan %s: %d rules and %d constants for %llu ranks on "
        "%llu nodes%s",
        path, static_cast<unsigned long long>(digest(text.bytes, text.size)), file->plan, rules,
        replaced, static_cast<unsigned long long>(ranks), static_cast<unsigned long long>(nodes),
        replaced > 0 && constants == nullptr ? "; this NCCL takes no constants" : "");
    if (rules > 0 && tuner == nullptr)
      say(log_warning, "paceline tuner: %s: there is no memory for its rules; NCCL decides", path);
  }
  std::free(text.bytes);
  std::free(file);
  return tuner;
}

void destroy(Tuner* tuner) noexcept {
  std::free(tuner);
}

void decide(const Tuner* tuner, int function, std::size_t bytes, float* costs, int cost_algorithms,
            int cost_protocols, int* channels) noexcept {
  if (tuner == nullptr || costs == nullptr || function < 0 || function >= functions) return;
  int low = tuner->first[function];
  int high = tuner->first[function + 1];
  while (low < high) {  // the first rule that does not end before `bytes`
    const int middle = low + (high - low) / 2;
    if (tuner->rules[middle].most < bytes)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == tuner->first[function + 1] || tuner->rules[low].least > bytes) return;
  const Rule& rule = tuner->rules[low];
  if (rule.algorithm >= cost_algorithms || rule.protocol >= cost_protocols) return;
  float& cost = costs[rule.algorithm * cost_protocols + rule.protocol];
  if (!(cost >= 0)) return;
  cost = 0;
  if (rule.channels > 0 && channels != nullptr) *channels = rule.channels;
}

}  // namespace paceline::nccl_tuner
