// Tests: tests/cli/output_formats_test.py.
#include "models/base/json_records.h"

#include <algorithm>
#include <span>
#include <utility>

#include "models/base/error.h"

namespace paceline {

// Collects the cells of each record.
class JsonRecords {
 public:
  struct Record {
    std::vector<std::pair<std::string, std::string>> cells;  // titles and values
  };

  static void collect(const Json& at, std::span<const std::string_view> path,
                      const std::vector<std::string_view>& keys, Record record,
                      std::vector<Record>& records) {
    if (path.empty()) {
      add("", at, record);
      records.push_back(std::move(record));
      return;
    }
    for (const std::string_view key : keys)
      if (const Json* found = member(at, key); found != nullptr && !is_nested(*found))
        record.cells.emplace_back(key, in_csv(*found));
    const Json* const list = member(at, path.front());
    const auto* elements = list == nullptr ? nullptr : std::get_if<Json::Array>(&list->value_);
    PACELINE_ASSERT(elements != nullptr, "the document has the list");
    for (const Json& element : *elements) collect(element, path.subspan(1), keys, record, records);
  }

 private:
  static bool is_nested(const Json& value) {
    return std::holds_alternative<Json::Array>(value.value_) ||
           std::holds_alternative<Json::Object>(value.value_);
  }

  static const Json* member(const Json& object, std::string_view key) {
    const auto* members = std::get_if<Json::Object>(&object.value_);
    if (members == nullptr) return nullptr;
    const auto found = std::find_if(members->begin(), members->end(),
                                    [key](const auto& member) { return member.first == key; });
    return found == members->end() ? nullptr : &found->second;
  }

  static void add(const std::string& prefix, const Json& object, Record& record) {
    const auto* members = std::get_if<Json::Object>(&object.value_);
    PACELINE_ASSERT(members != nullptr, "a record is an object");
    for (const auto& [key, value] : *members) {
      if (std::holds_alternative<Json::Object>(value.value_))
        add(prefix + key + ".", value, record);
      else if (!std::holds_alternative<Json::Array>(value.value_))
        record.cells.emplace_back(prefix + key, in_csv(value));
    }
  }

  static std::string in_csv(const Json& value) {
    const auto* const text = std::get_if<std::string>(&value.value_);
    if (text == nullptr) {
      std::string number = value.in_one_line();
      return number == "null" ? std::string() : number;
    }
    if (text->find_first_of(",\"\r\n") == std::string::npos) return *text;
    std::string quoted = "\"";
    for (const char c : *text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
  }
};

std::string csv_records(const Json& document, const std::vector<std::string_view>& path,
                        const std::vector<std::string_view>& keys) {
  using Record = JsonRecords::Record;
  std::vector<Record> records;
  JsonRecords::collect(document, path, keys, {}, records);
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
