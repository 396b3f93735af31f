// Lists in JSON documents as comma-separated values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/base/json.h"

namespace paceline {

// A line of titles, and a record (RFC 4180) for each element of the lists to which the path of keys
// leads: {"points", "strategies"} has the strategies of every point. A record has those of `keys`
// that the document and the elements on the way have, then the texts, numbers and truth values of
// its element by their keys; those of an object in it have its key before theirs, as in
// "memory.total_bytes". What is null or not there is empty, and lists in an element are left out.
// A path that is not there is a broken invariant.
[[nodiscard]] std::string csv_records(const Json& document,
                                      const std::vector<std::string_view>& path,
                                      const std::vector<std::string_view>& keys = {});

}  // namespace paceline
