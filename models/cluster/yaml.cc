// Tests: tests/models/cluster_test.cc, tests/models/cluster_hostile_test.cc.
#include "models/cluster/yaml.h"

#include "models/base/yaml_reader.h"
#include "models/cluster/cluster_reader.h"

namespace paceline::models {

Cluster parse_cluster_yaml(std::string_view text, const std::string& file, const FileReader& read) {
  return read_cluster(parse_yaml(text, file), file, "", read);
}

}  // namespace paceline::models
