// Tests: tests/runtime/nccl_tuner/tuner_plugin_test.cc.
#include "runtime/nccl_tuner/tuner_file.h"

#include <cstring>

namespace paceline::nccl_tuner {
namespace {

constexpr const char* schema = "paceline.nccl-tuner/1";
constexpr int most_fields = 9;

// A piece of a line; it has no zero at its end.
struct Word {
  const char* begin = nullptr;
  std::size_t size = 0;

  [[nodiscard]] bool is(const char* text) const noexcept {
    return std::strlen(text) == size && std::memcmp(begin, text, size) == 0;
  }
};

struct Fields {
  Word words[most_fields];
  int count = 0;
};

// Fields stand between single blanks; false for an empty one, and for too many.
bool split(Word line, Fields& fields) noexcept {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size; ++i) {
    if (i < line.size && line.begin[i] != ' ') continue;
    if (i == begin || fields.count == most_fields) return false;
    fields.words[fields.count++] = {line.begin + begin, i - begin};
    begin = i + 1;
  }
  return true;
}

// Digits only, without a leading zero; false beyond `most`, which is below 2^63.
bool read_whole(Word word, std::uint64_t least, std::uint64_t most, std::uint64_t& value) noexcept {
  if (word.size == 0 || word.size > 19 || (word.size > 1 && word.begin[0] == '0')) return false;
  value = 0;
  for (std::size_t i = 0; i < word.size; ++i) {
    const char digit = word.begin[i];
    if (digit < '0' || digit > '9') return false;
    value = 10 * value + static_cast<std::uint64_t>(digit - '0');
  }
  return value >= least && value <= most;
}

// Digits with at most one point between them, above 0 and up to 1e6. (strtod asks the locale.)
bool read_decimal(Word word, double& value) noexcept {
  constexpr std::size_t most_digits = 16;
  constexpr double most = 1e6;
  double whole = 0;
  double unit = 1;
  bool point = false;
  if (word.size == 0 || word.size > most_digits || word.begin[0] == '.' ||
      word.begin[word.size - 1] == '.')
    return false;
  for (std::size_t i = 0; i < word.size; ++i) {
    const char c = word.begin[i];
    if (c == '.') {
      if (point) return false;
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return false;
    whole = 10 * whole + (c - '0');
    if (point) unit *= 10;
  }
  value = whole / unit;
  return value > 0 && value <= most;
}

bool read_name(Word word, const char* const* names, int count, int& index) noexcept {
  for (index = 0; index < count; ++index) {
    if (word.is(names[index])) return true;
  }
  return false;
}

const char* read_communicator(const Fields& fields, int at, std::uint64_t& ranks,
                              std::uint64_t& nodes) noexcept {
  if (!read_whole(fields.words[at], 2, most_ranks, ranks)) return "not 2 to 1048576 ranks";
  if (!read_whole(fields.words[at + 1], 1, ranks, nodes)) return "not 1 node to one for each rank";
  return nullptr;
}

// By function, ranks and nodes.
int order(const Rule& a, const Rule& b) noexcept {
  if (a.function != b.function) return a.function < b.function ? -1 : 1;
  if (a.ranks != b.ranks) return a.ranks < b.ranks ? -1 : 1;
  if (a.nodes != b.nodes) return a.nodes < b.nodes ? -1 : 1;
  return 0;
}

// rule FUNCTION RANKS NODES LEAST MOST ALGORITHM PROTOCOL CHANNELS
const char* read_rule(const Fields& fields, TunerFile& file) noexcept {
  if (fields.count != 9) return "a rule has eight fields";
  if (file.rule_count == most_rules) return "more than 4096 rules";
  Rule rule{};
  if (!read_name(fields.words[1], function_names, functions, rule.function))
    return "no function of NCCL that has rules";
  if (const char* wrong = read_communicator(fields, 2, rule.ranks, rule.nodes)) return wrong;
  if (!read_whole(fields.words[4], 0, most_bytes, rule.least) ||
      !read_whole(fields.words[5], 0, most_bytes, rule.most))
    return "bytes are whole numbers from 0 to 2^62";
  if (rule.most < rule.least) return "the range ends before it begins";
  if (!read_name(fields.words[6], algorithm_names, algorithms, rule.algorithm))
    return "no algorithm of NCCL";
  if (!read_name(fields.words[7], protocol_names, protocols, rule.protocol))
    return "no protocol of NCCL";
  std::uint64_t channels = 0;
  if (!fields.words[8].is("keep") && !read_whole(fields.words[8], 1, most_channels, channels))
    return "channels are keep, or 1 to 64";
  rule.channels = static_cast<int>(channels);
  if (file.rule_count > 0) {
    const Rule& last = file.rules[file.rule_count - 1];
    const int after = order(last, rule);
    if (after > 0) return "rules are not in order";
    if (after == 0 && rule.least <= last.most)
      return "the range overlaps the one above it, or stands before it";
  }
  file.rules[file.rule_count++] = rule;
  return nullptr;
}

// Which double of Constants the fields from `at` on name, up to the last but one.
bool read_slot(const Fields& fields, int at, std::size_t& slot) noexcept {
  const Word& kind = fields.words[at];
  const int names = fields.count - at - 2;
  int algorithm = 0;
  int protocol = 0;
  int link = 0;
  int generation = 0;
  int scale = 0;
  const auto place = [&slot](std::size_t offset, int row, int columns, int column) {
    slot = offset / sizeof(double) + static_cast<std::size_t>(row * columns + column);
    return true;
  };
  if (kind.is("base"))
    return names == 2 && read_name(fields.words[at + 1], algorithm_names, algorithms, algorithm) &&
           read_name(fields.words[at + 2], protocol_names, protocols, protocol) &&
           place(offsetof(Constants, base_latencies), algorithm, protocols, protocol);
  if (kind.is("step"))
    return names == 3 && read_name(fields.words[at + 1], link_names, links, link) &&
           read_name(fields.words[at + 2], algorithm_names, algorithms, algorithm) &&
           read_name(fields.words[at + 3], protocol_names, protocols, protocol) &&
           place(offsetof(Constants, step_latencies), link * algorithms + algorithm, protocols,
                 protocol);
  struct Table {
    const char* name;
    std::size_t offset;
  };
  constexpr Table tables[] = {{"ll-most", offsetof(Constants, ll_most)},
                              {"ring-ll128-most", offsetof(Constants, ring_ll128_most)},
                              {"tree-ll128-most", offsetof(Constants, tree_ll128_most)},
                              {"tree-most", offsetof(Constants, tree_most)},
                              {"nvls-tree-most", offsetof(Constants, nvls_tree_most)}};
  for (const Table& table : tables) {
    if (kind.is(table.name))
      return names == 2 &&
             read_name(fields.words[at + 1], generation_names, generations, generation) &&
             read_name(fields.words[at + 2], scale_names, scales, scale) &&
             place(table.offset, generation, scales, scale);
  }
  return false;
}

// constant RANKS NODES KIND NAME... VALUE
const char* read_constant(const Fields& fields, TunerFile& file) noexcept {
  if (fields.count < 6) return "a constant has at least five fields";
  if (file.constant_count == most_constants) return "more than 1024 constants";
  Constant constant{};
  if (const char* wrong = read_communicator(fields, 1, constant.ranks, constant.nodes))
    return wrong;
  if (!read_slot(fields, 3, constant.slot)) return "no constant of NCCL";
  if (!read_decimal(fields.words[fields.count - 1], constant.value))
    return "a constant is a number above 0, up to 1000000";
  for (int i = 0; i < file.constant_count; ++i) {
    const Constant& other = file.constants[i];
    if (other.slot == constant.slot && other.ranks == constant.ranks &&
        other.nodes == constant.nodes)
      return "this constant is there twice";
  }
  file.constants[file.constant_count++] = constant;
  return nullptr;
}

// The line from `at` on; its end is at the newline. Nothing where there is no newline.
bool next_line(const char* text, std::size_t size, std::size_t at, Word& line) noexcept {
  const auto* end = static_cast<const char*>(std::memchr(text + at, '\n', size - at));
  if (end == nullptr) return false;
  line = {text + at, static_cast<std::size_t>(end - (text + at))};
  return true;
}

bool is_printable(Word line) noexcept {
  for (std::size_t i = 0; i < line.size; ++i) {
    if (line.begin[i] < ' ' || line.begin[i] > '~') return false;
  }
  return true;
}

// What the line says; `ended` becomes true with the last one.
const char* read_line(Word line, TunerFile& file, bool& ended) noexcept {
  constexpr std::size_t plan_prefix = 5;
  if (line.size > plan_prefix && std::memcmp(line.begin, "plan ", plan_prefix) == 0) {
    if (file.plan[0] != 0) return "a second plan";
    std::memcpy(file.plan, line.begin + plan_prefix, line.size - plan_prefix);
    file.plan[line.size - plan_prefix] = 0;
    return nullptr;
  }
  Fields fields;
  if (!split(line, fields)) return "an empty field, or too many";
  if (file.plan[0] == 0) return "the plan is not named yet";
  if (fields.words[0].is("rule")) return read_rule(fields, file);
  if (fields.words[0].is("constant")) return read_constant(fields, file);
  if (!fields.words[0].is("end")) return "neither rule, constant nor end";
  std::uint64_t lines = 0;
  if (fields.count != 2 || !read_whole(fields.words[1], 0, most_rules + most_constants, lines) ||
      lines != static_cast<std::uint64_t>(file.rule_count + file.constant_count))
    return "end does not count the rules and constants above it";
  ended = true;
  return nullptr;
}

}  // namespace

Fault parse(const char* text, std::size_t size, TunerFile& file) noexcept {
  file.plan[0] = 0;
  file.rule_count = 0;
  file.constant_count = 0;
  if (size > most_file_bytes) return {0, "larger than 1 MiB"};
  int number = 0;
  bool ended = false;
  for (std::size_t at = 0; at < size;) {
    ++number;
    Word line;
    if (!next_line(text, size, at, line)) return {number, "the last line is cut off"};
    at += line.size + 1;
    if (ended) return {number, "something after the end"};
    if (line.size > longest_line) return {number, "longer than 255 characters"};
    if (!is_printable(line)) return {number, "not printable ASCII"};
    if (number == 1) {
      if (!line.is(schema)) return {1, "not paceline.nccl-tuner/1"};
      continue;
    }
    if (line.size > 0 && line.begin[0] == '#') continue;
    if (const char* wrong = read_line(line, file, ended)) return {number, wrong};
  }
  if (number == 0) return {0, "empty"};
  if (!ended) return {number, "cut off: there is no line end"};
  return {0, nullptr};
}

std::uint64_t digest(const char* text, std::size_t size) noexcept {
  std::uint64_t value = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < size; ++i) {
    value ^= static_cast<unsigned char>(text[i]);
    value *= 0x100000001b3;
  }
  return value;
}

}  // namespace paceline::nccl_tuner
