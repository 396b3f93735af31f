// One file of the catalogue that ships, as text: its entries by name, not yet read as devices,
// links or clusters. Private to .cc files of models/cluster (it shows yaml-cpp).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/yaml_reader.h"
#include "models/cluster/catalog_parts.h"

namespace paceline::models {

// Only the line of the entry that is asked for is parsed: entries stand on one line each, as
// "  name: {...}", under the line of their section, as "devices:".
class CatalogFile {
 public:
  CatalogFile(const char* file, const char* section);

  // Throws InputError that suggests the nearest name; `kind` is the noun.
  [[nodiscard]] YAML::Node entry(std::string_view name, const char* kind) const;
  // In the order of the file.
  [[nodiscard]] std::vector<CatalogEntry> entries() const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  void for_each_line(
      const std::function<void(std::string_view name, std::string_view body)>& visit) const;

  std::string file_;
  const char* section_;
  std::string_view text_;
};

}  // namespace paceline::models
