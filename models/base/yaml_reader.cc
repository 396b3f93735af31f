// Tests: tests/models/network_yaml_test.cc, tests/models/cluster_hostile_test.cc.
#include "models/base/yaml_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/base/names.h"

namespace paceline {
namespace {

constexpr std::size_t largest = 16u << 20;
constexpr int deepest = 64;

// yaml-cpp parses by recursion: refuses what could exhaust the stack before it is parsed. Counts
// open brackets, and indentation or dashes that open block collections; strings may count too much.
void check_depth(std::string_view text, const std::string& file) {
  int brackets = 0;
  int line = 1;
  bool at_start = true;
  int opened = 0;  // block collections that this line may open
  std::size_t indent = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      at_start = true;
      opened = 0;
      indent = 0;
      continue;
    }
    if (at_start && c == ' ') ++indent;
    if (at_start && (c == '-' || c == '?')) ++opened;
    if (at_start && c != ' ' && c != '-' && c != '?') at_start = false;
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    if (brackets > deepest || opened > deepest || indent > 16 * deepest) {
      throw InputError({file, line},
                       fmt::format("the file is nested deeper than {} levels", deepest),
                       "descriptions are flatter than that");
    }
  }
}

// YAML::Load ignores all documents but the first, and YAML::LoadAll of yaml-cpp 0.7 never ends on
// some that are broken. A line that starts with --- is always a marker, also inside scalars.
void check_single_document(std::string_view text, const std::string& file) {
  bool begun = false;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view content = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const bool marker = content.starts_with("---") && (content.size() == 3 || content[3] == ' ' ||
                                                       content[3] == '\t' || content[3] == '\r');
    if (marker && begun)
      throw InputError({file, line, 1}, "a second document starts here",
                       "write one document in each file");
    const std::size_t first = content.find_first_not_of(" \t\r");
    begun = begun || marker ||
            (first != std::string_view::npos && content[first] != '#' && content[first] != '%');
  }
}

}  // namespace

InputPlace place_of(const YAML::Node& node, const std::string& file) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? InputPlace{file} : InputPlace{file, mark.line + 1, mark.column + 1};
}

YAML::Node parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > largest)
    throw InputError({file}, "the file is larger than 16 MiB", "give a description, not data");
  check_depth(text, file);
  check_single_document(text, file);
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    const InputPlace place = error.mark.is_null()
                                 ? InputPlace{file}
                                 : InputPlace{file, error.mark.line + 1, error.mark.column + 1};
    throw InputError(place, "this is not YAML: " + error.msg, "");
  }
  if (!root.IsDefined() || root.IsNull())
    throw InputError({file, 1, 1}, "the file is empty", "write a description (docs/formats.md)");
  if (!root.IsMap())
    throw InputError(place_of(root, file), "the file is no mapping",
                     "write keys and values, as in docs/formats.md");
  return root;
}

YamlMap::YamlMap(const YAML::Node& node, const std::string& file, std::string what,
                 std::vector<std::string> keys)
    : node_(node), file_(file), what_(std::move(what)) {
  if (!node.IsMap())
    throw InputError(place_of(node, file), fmt::format("{} is no mapping", what_),
                     "write keys and values");
  std::vector<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const bool known = std::find(keys.begin(), keys.end(), key) != keys.end();
    if (!known) {
      const InputError error = unknown_name("key", key, keys);
      throw InputError(place_of(entry.first, file), error.problem(), error.remedy());
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      throw InputError(place_of(entry.first, file), fmt::format("key '{}' stands twice", key),
                       "keep one of them");
    }
    seen.push_back(key);
  }
}

bool YamlMap::has(const std::string& key) const {
  return node_[key].IsDefined() && !node_[key].IsNull();
}

YAML::Node YamlMap::at(const std::string& key) const {
  if (!has(key))
    throw InputError(place(), fmt::format("{} has no '{}'", what_, key),
                     fmt::format("add {}: ...", key));
  return node_[key];
}

std::string YamlMap::scalar(const YAML::Node& node, const std::string& file,
                            const std::string& key) {
  if (!node.IsScalar())
    throw InputError(place_of(node, file), fmt::format("{} is no single value", key),
                     fmt::format("write {}: value", key));
  return node.Scalar();
}

std::string YamlMap::text(const std::string& key) const {
  return scalar(at(key), file_, key);
}

std::string YamlMap::text_or(const std::string& key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}

bool YamlMap::flag_or(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  return parsed(key, [](const std::string& text) {
    if (text == "true" || text == "yes") return true;
    if (text == "false" || text == "no") return false;
    throw InputError(fmt::format("{} is no truth value", in_quotes(text)), "write true or false");
  });
}

InputPlace YamlMap::place_of_key(const std::string& key) const {
  return has(key) ? place_of(node_[key], file_) : place();
}

}  // namespace paceline
