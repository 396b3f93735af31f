// Tests: tests/cli/output_formats_test.py.
#include "models/base/json_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "models/base/error.h"

namespace paceline {
namespace {

using Ordered = nlohmann::ordered_json;

std::string in_csv(const Ordered& value) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

struct Record {
  std::vector<std::pair<std::string, std::string>> cells;  // titles and values

  void add(const std::string& prefix, const Ordered& object) {
    for (const auto& [key, value] : object.items()) {
      if (value.is_object()) {
        add(prefix + key + ".", value);
      } else if (!value.is_array()) {
        cells.emplace_back(prefix + key, in_csv(value));
      }
    }
  }
};

void collect(const Ordered& at, std::span<const std::string_view> path,
             const std::vector<std::string_view>& keys, Record record,
             std::vector<Record>& records) {
  if (path.empty()) {
    record.add("", at);
    records.push_back(std::move(record));
    return;
  }
  for (const std::string_view key : keys) {
    const auto found = at.find(key);
    if (found != at.end() && found->is_primitive()) record.cells.emplace_back(key, in_csv(*found));
  }
  const auto list = at.find(path.front());
  PACELINE_ASSERT(list != at.end() && list->is_array(), "the document has the list");
  for (const Ordered& element : *list) collect(element, path.subspan(1), keys, record, records);
}

}  // namespace

std::string csv_records(const std::string& document, const std::vector<std::string_view>& path,
                        const std::vector<std::string_view>& keys) {
  std::vector<Record> records;
  collect(Ordered::parse(document), path, keys, {}, records);
  std::vector<std::string> titles;
  for (const Record& record : records)
    for (const auto& [title, value] : record.cells)
      if (std::find(titles.begin(), titles.end(), title) == titles.end()) titles.push_back(title);
  std::string text;
  for (std::size_t i = 0; i < titles.size(); ++i) text += (i == 0 ? "" : ",") + titles[i];
  text += "\n";
  for (const Record& record : records) {
    for (std::size_t i = 0; i < titles.size(); ++i) {
      const auto cell = std::find_if(record.cells.begin(), record.cells.end(),
                                     [&](const auto& one) { return one.first == titles[i]; });
      text += (i == 0 ? "" : ",") + (cell == record.cells.end() ? std::string() : cell->second);
    }
    text += "\n";
  }
  return text;
}

}  // namespace paceline
