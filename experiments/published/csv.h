// Tables as text: comma-separated values with the quoting of RFC 4180.
//
// A field in double quotes may hold commas, line ends and, doubled, quotes. Lines end with LF or
// CRLF. Beyond the RFC, an empty line and a line that begins with '#' outside quotes have no
// effect, and a line end inside quotes is read as a blank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::experiments {

struct CsvRecord {
  int line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// The records below a header, which must have exactly the names `columns`. Each record has as many
// fields. `file` names the text in errors. Throws InputError with file and line; also for control
// characters, which have no place in a table. O(text).
[[nodiscard]] std::vector<CsvRecord> parse_csv(std::string_view text, const std::string& file,
                                               const std::vector<std::string>& columns);

}  // namespace paceline::experiments
