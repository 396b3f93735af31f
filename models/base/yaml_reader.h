// Reading YAML that a user wrote: every fault becomes one InputError with file, line and column.
//
// Private to .cc files (it shows yaml-cpp). YamlMap checks that all of its keys are known.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"

namespace paceline {

// Parses one document whose root is a mapping. Throws InputError if it is larger than 16 MiB,
// nested deeper than 64 levels, no YAML, empty, several documents, or no mapping.
[[nodiscard]] YAML::Node parse_yaml(std::string_view text, const std::string& file);

// The file, line and column of a node, for errors.
[[nodiscard]] InputPlace place_of(const YAML::Node& node, const std::string& file);

// A mapping of which every key is one of `keys`. Throws InputError that suggests the nearest key.
class YamlMap {
 public:
  YamlMap(const YAML::Node& node, const std::string& file, std::string what,
          std::vector<std::string> keys);

  [[nodiscard]] bool has(const std::string& key) const;
  // The value of a key that must be there.
  [[nodiscard]] YAML::Node at(const std::string& key) const;
  // The text of a scalar.
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& otherwise) const;
  [[nodiscard]] bool flag_or(const std::string& key, bool otherwise) const;
  // parse(text of the scalar); an InputError gets the place of the value.
  template <class F>
  auto parsed(const std::string& key, F parse) const {
    return parsed_scalar(at(key), file_, key, parse);
  }
  [[nodiscard]] InputPlace place() const { return place_of(node_, file_); }
  [[nodiscard]] InputPlace place_of_key(const std::string& key) const;
  [[nodiscard]] const std::string& file() const { return file_; }

  template <class F>
  static auto parsed_scalar(const YAML::Node& node, const std::string& file, const std::string& key,
                            F parse) {
    const std::string text = scalar(node, file, key);
    try {
      return parse(text);
    } catch (const InputError& error) {
      throw InputError(place_of(node, file), key + ": " + error.problem(), error.remedy());
    }
  }
  [[nodiscard]] static std::string scalar(const YAML::Node& node, const std::string& file,
                                          const std::string& key);

 private:
  YAML::Node node_;
  std::string file_;
  std::string what_;
};

}  // namespace paceline
