// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "calibration/import/nccl_tests_rows.h"
#include "calibration/import/table_text.h"
#include "models/base/json_reader.h"
#include "models/base/limits.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::calibration {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;
constexpr std::size_t most_text = 128 << 20;  // of 100,000 rows; in memory it is ten times as large

double number_or(const JsonValue& object, const char* key, double otherwise) {
  return object.has_value(key) && object.at(key).is_number() ? object.at(key).number() : otherwise;
}

// The collective of the program that wrote the file; nothing where the file does not name it.
std::optional<models::Collective> collective_of(const JsonValue& root, const std::string& file) {
  if (!root.has_value("args")) return std::nullopt;
  std::optional<std::string> program;
  root.at("args").for_each([&](const JsonValue& argument) {
    if (!program) program = argument.text();
  });
  if (!program || program->find("_perf") == std::string::npos) return std::nullopt;
  return collective_of_program(*program, {file});
}

// Number and bus address, as far as the file has them.
std::string device_of(const JsonValue& device) {
  std::string text;
  if (device.has_value("device"))
    text = fmt::format("{}", device.at("device").whole(0, most_ranks));
  if (device.has_value("device_hex")) text += ' ' + device.at("device_hex").text();
  return text;
}

NcclTestsRun run_of(const JsonValue& root) {
  if (!root.has_value("config")) return {};
  const JsonValue config = root.at("config");
  std::int64_t per_process = 1;
  for (const char* key : {"nthreads", "ngpus"}) {
    if (config.has_value(key)) per_process *= config.at(key).whole(1, 1000);
  }
  const JsonValue& holder = config.has_value("devices") ? config : root;
  if (!holder.has_value("devices")) return {};
  NcclTestsDevices devices;
  holder.at("devices").for_each(
      [&](const JsonValue& device) {
        devices.add(static_cast<int>(device.at("rank").whole(0, most_ranks)),
                    device.has_value("hostname") ? device.at("hostname").text() : std::string(),
                    device_of(device));
      },
      most_ranks);
  // The first device of each process is listed, or each one is.
  const auto step = static_cast<int>(per_process);
  return devices.told(devices.are_multiples_of(step) ? step : 1);
}

// A root is a number, or one in a text: "    -1".
bool has_root(const JsonValue& result) {
  if (!result.has_value("root")) return false;
  const JsonValue root = result.at("root");
  return root.is_number() ? root.number() >= 0 : root.text().find('-') == std::string::npos;
}

struct RowKeys {
  const char* algbw;
  const char* busbw;
};

// The row except for its time. `cells` has what the keys name.
NcclTestsRow row_of(const JsonValue& result, const JsonValue& cells, bool in_place,
                    const RowKeys& keys, double wrong) {
  NcclTestsRow row{.bytes = Bytes{static_cast<double>(result.at("size").whole(
                       0, static_cast<std::int64_t>(Limits<Bytes>::most.value())))},
                   .time = Seconds{0},
                   .type = result.at("type").text(),
                   .operation = result.at("redop").text(),
                   .has_root = has_root(result),
                   .checked = NcclTestsChecked::unknown,
                   .in_place = in_place,
                   .wrong = wrong,
                   .algbw = number_or(cells, keys.algbw, 0),
                   .busbw = number_or(cells, keys.busbw, 0)};
  return row;
}

// Rows of 0 bytes have none.
Seconds time_of(const JsonValue& time, Bytes bytes) {
  return bytes > Bytes{0} ? Seconds{time.number(1e-3, 1e9) * 1e-6} : Seconds{0};
}

void read_row(const JsonValue& result, std::optional<models::Collective> collective,
              NcclTestsRows& rows, const std::string& file, std::size_t& without_time) {
  const bool in_place = !(collective && simulator::is_sends_and_receives(*collective)) &&
                        result.has_value("in_place");
  const JsonValue cells = result.at(in_place ? "in_place" : "out_of_place");
  NcclTestsRow row = row_of(result, cells, in_place, {.algbw = "alg_bw", .busbw = "bus_bw"},
                            number_or(cells, "nwrong", 0));
  const JsonValue time = cells.at(cells.has("cpu_time") ? "cpu_time" : "time");
  if (!time.is_number()) {
    ++without_time;
    return;
  }
  row.time = time_of(time, row.bytes);
  rows.add(row, {file});
}

bool looks_like_rccl_tests_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[') &&
         text.find("\"busBw\"") != std::string_view::npos &&
         text.find("\"inPlace\"") != std::string_view::npos;
}

// "[{...},\n{...}]" of an object a line. Lines keep their numbers.
std::string list_of_lines(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::string list = "[";
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::size_t next = text.find_first_not_of(blanks, end);
    if (end == std::string_view::npos || next == std::string_view::npos) break;
    const std::string_view line = text.substr(begin, end - begin);
    list.append(line);
    const std::size_t last = line.find_last_not_of(blanks);
    if (last != std::string_view::npos && line[last] == '}' && text[next] == '{') list += ',';
    list.append(text.substr(end, next - end));
    begin = next;
  }
  list.append(text.substr(begin));
  return list + "]";
}

double wrong_of(const JsonValue& result) {
  // Files of rccl-tests of 2024 have a text here: "0", "N/A".
  if (result.has_value("#wrong") && !result.at("#wrong").is_number()) {
    const std::string text = result.at("#wrong").text();
    return text == "0" || text == "N/A" ? 0 : 1;
  }
  return number_or(result, "#wrong", number_or(result, "wrong", 0));
}

// 0: the row does not say.
int ranks_of_row(const JsonValue& result) {
  if (result.has_value("gpus")) return static_cast<int>(result.at("gpus").whole(1, most_ranks));
  if (!result.has_value("ranks")) return 0;
  const std::int64_t ranks = result.at("ranks").whole(1, most_ranks);
  const std::int64_t gpus =
      result.has_value("gpusPerRank") ? result.at("gpusPerRank").whole(1, 1000) : 1;
  return static_cast<int>(std::min(ranks * gpus, most_ranks));
}

Imported parse_rccl_tests_json(std::string_view text, const std::string& file) {
  const bool lines = text[text.find_first_not_of(" \t\r\n")] == '{';
  const std::string list = lines ? list_of_lines(text) : std::string();
  const JsonDocument document(lines ? std::string_view(list) : text, file,
                              "the output of rccl-tests",
                              "give what all_reduce_perf -Z json -x FILE wrote in a finished run");
  std::vector<NcclTestsRow> found;
  bool in_place = false;
  std::optional<models::Collective> collective;
  std::optional<int> ranks;
  int nodes = 0;
  document.root().for_each(
      [&](const JsonValue& result) {
        const models::Collective of_row = collective_of_program(result.at("name").text(), {file});
        if (collective.value_or(of_row) != of_row)
          result.at("name").fail(
              fmt::format("{}, and the rows before are of {}", name(of_row), name(*collective)),
              "give one run a file");
        collective = of_row;
        const int gpus = ranks_of_row(result);
        if (ranks.value_or(gpus) != gpus)
          result.fail(
              fmt::format("this row has {} GPUs, and the rows before have {}", gpus, *ranks),
              "give one run a file");
        ranks = gpus;
        if (result.has_value("nodes"))
          nodes = std::max(nodes, static_cast<int>(result.at("nodes").whole(1, most_ranks)));
        NcclTestsRow row = row_of(result, result, result.at("inPlace").whole(0, 1) == 1,
                                  {.algbw = "algBw", .busbw = "busBw"}, wrong_of(result));
        row.time = time_of(result.at("time"), row.bytes);
        in_place = in_place || (row.in_place && !simulator::is_sends_and_receives(*collective));
        found.push_back(row);
      },
      most_table_rows);
  NcclTestsRows rows;
  for (const NcclTestsRow& row : found) {
    if (row.in_place == in_place) rows.add(row, {file});
  }
  NcclTestsRun run;
  if (ranks.value_or(0) > 0) run.ranks = Count::of(*ranks);
  if (nodes > 0) run.nodes = Count::of(nodes);
  Imported imported = rows.finish("", std::move(run), file, collective);
  imported.tool = "rccl-tests";
  return imported;
}

bool looks_like_one_document(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.find("\"bus_bw\"") != std::string_view::npos &&
         text.find("\"results\"") != std::string_view::npos;
}

}  // namespace

bool looks_like_nccl_tests_json(std::string_view text) {
  return looks_like_one_document(text) || looks_like_rccl_tests_json(text);
}

Imported parse_nccl_tests_json(std::string_view text, const std::string& file,
                               std::optional<models::Collective> stated) {
  if (text.size() > most_text)
    throw InputError({file}, "a run of nccl-tests in more than 128 MiB of JSON",
                     "give that of one run");
  if (!looks_like_one_document(text)) return parse_rccl_tests_json(text, file);
  const JsonDocument document(text, file, "the output of nccl-tests",
                              "give what all_reduce_perf -J wrote in a finished run");
  const JsonValue root = document.root();
  std::optional<models::Collective> collective = collective_of(root, file);
  if (!collective) collective = stated;
  NcclTestsRows rows;
  std::size_t without_time = 0;
  root.at("results").for_each(
      [&](const JsonValue& result) { read_row(result, collective, rows, file, without_time); },
      most_table_rows);
  std::string version;
  if (root.has_value("version"))
    version = fmt::format("JSON version {}", root.at("version").whole(0, 1000));
  Imported imported = rows.finish(version, run_of(root), file, collective);
  if (without_time > 0)
    imported.remarks.push_back(fmt::format("rows without a time are left out: {}", without_time));
  return imported;
}

}  // namespace paceline::calibration
