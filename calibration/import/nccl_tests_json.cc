// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "calibration/import/nccl_tests_rows.h"
#include "calibration/import/table_text.h"
#include "models/base/json_reader.h"
#include "models/base/limits.h"

namespace paceline::calibration {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;

double number_or(const JsonValue& object, const char* key, double otherwise) {
  return object.has_value(key) && object.at(key).is_number() ? object.at(key).number() : otherwise;
}

// "all_gather_perf" of "/opt/nccl-tests/build/all_gather_perf".
void check_program(const JsonValue& root, const std::string& file) {
  if (!root.has_value("args")) return;
  std::optional<std::string> program;
  root.at("args").for_each([&](const JsonValue& argument) {
    if (!program) program = argument.text();
  });
  if (!program) return;
  const std::string name = program->substr(program->find_last_of('/') + 1);
  if (name.find("_perf") != std::string::npos && name.find("all_reduce") == std::string::npos)
    throw InputError({file}, "this is the output of " + in_quotes(name),
                     "give that of all_reduce_perf");
}

int ranks_of(const JsonValue& root, NcclTestsDevices& devices) {
  if (!root.has_value("config")) return 0;
  const JsonValue config = root.at("config");
  std::int64_t per_process = 1;
  for (const char* key : {"nthreads", "ngpus"}) {
    if (config.has_value(key)) per_process *= config.at(key).whole(1, 1000);
  }
  const JsonValue& holder = config.has_value("devices") ? config : root;
  if (!holder.has_value("devices")) return 0;
  holder.at("devices").for_each(
      [&](const JsonValue& device) {
        devices.ranks.insert(static_cast<int>(device.at("rank").whole(0, most_ranks)));
        if (device.has_value("hostname")) devices.nodes.insert(device.at("hostname").text());
      },
      most_ranks);
  if (devices.ranks.empty()) return 0;
  const bool first_of_each_process = std::all_of(devices.ranks.begin(), devices.ranks.end(),
                                                 [&](int rank) { return rank % per_process == 0; });
  const auto listed = static_cast<std::int64_t>(devices.ranks.size());
  return static_cast<int>(
      std::min(first_of_each_process ? listed * per_process : listed, most_ranks));
}

void read_row(const JsonValue& result, NcclTestsRows& rows, const std::string& file,
              std::size_t& without_time) {
  const bool in_place = result.has_value("in_place");
  const JsonValue cells = result.at(in_place ? "in_place" : "out_of_place");
  const char* time_key = cells.has("cpu_time") ? "cpu_time" : "time";
  NcclTestsRow row{.bytes = Bytes{static_cast<double>(result.at("size").whole(
                       0, static_cast<std::int64_t>(Limits<Bytes>::most.value())))},
                   .time = Seconds{0},
                   .type = result.at("type").text(),
                   .operation = result.at("redop").text(),
                   .in_place = in_place,
                   .wrong = number_or(cells, "nwrong", 0),
                   .algbw = number_or(cells, "alg_bw", 0),
                   .busbw = number_or(cells, "bus_bw", 0)};
  if (row.operation == "none")
    result.at("redop").fail("this is no reduction", "give the output of all_reduce_perf");
  const JsonValue time = cells.at(time_key);
  if (!time.is_number()) {
    ++without_time;
    return;
  }
  if (row.bytes > Bytes{0}) row.time = Seconds{time.number(1e-3, 1e9) * 1e-6};
  rows.add(row, {file});
}

}  // namespace

bool looks_like_nccl_tests_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.find("\"bus_bw\"") != std::string_view::npos &&
         text.find("\"results\"") != std::string_view::npos;
}

Imported parse_nccl_tests_json(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file, "the output of nccl-tests",
                              "give what all_reduce_perf -J wrote in a finished run");
  const JsonValue root = document.root();
  check_program(root, file);
  NcclTestsDevices devices;
  const int ranks = ranks_of(root, devices);
  NcclTestsRows rows;
  std::size_t without_time = 0;
  root.at("results").for_each(
      [&](const JsonValue& result) { read_row(result, rows, file, without_time); },
      most_table_rows);
  std::string version;
  if (root.has_value("version"))
    version = fmt::format("JSON version {}", root.at("version").whole(0, 1000));
  Imported imported = rows.finish(version, ranks, devices.nodes.size() > 1, file);
  if (without_time > 0)
    imported.remarks.push_back(fmt::format("rows without a time are left out: {}", without_time));
  return imported;
}

}  // namespace paceline::calibration
