// Tests: tests/cli/time_test.py.
#include "cli/job/sizes.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"

namespace paceline::job {

Bytes parse_size(const std::string& text) {
  const bool is_bare = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const Bytes size = parse_bytes(is_bare ? text + " B" : text);
  if (size < Bytes{1} || size > largest_size)
    throw InputError(fmt::format("a message of {}", to_text(size)), "choose 1 B to 1 PB");
  return size;
}

namespace {

void check_number(std::size_t sizes) {
  if (sizes > most_sizes)
    throw InputError(fmt::format("more than {} sizes", most_sizes), "give fewer");
}

}  // namespace

std::vector<Bytes> parse_sizes(const std::string& text, double factor) {
  std::vector<Bytes> sizes;
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string::npos) {
    for (const std::string& part : comma_list(text)) {
      sizes.push_back(parse_size(part));
      check_number(sizes.size());
    }
    return sizes;
  }
  const Bytes first = parse_size(text.substr(0, dash));
  const Bytes last = parse_size(text.substr(dash + 1));
  if (last < first)
    throw InputError(fmt::format("'{}' goes down", text),
                     fmt::format("write {}-{}", text.substr(dash + 1), text.substr(0, dash)));
  for (Bytes size = first; size < last; size *= factor) {
    sizes.push_back(size);
    check_number(sizes.size());
  }
  sizes.push_back(last);
  return sizes;
}

}  // namespace paceline::job
