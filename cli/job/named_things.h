// What a name or a file of an option stands for: a network, a cluster, a profile, a number of
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/cluster/other_nic.h"
#include "models/network/network.h"
#include "models/network/work.h"
#include "models/profile/profile.h"

namespace paceline::job {

// A network as predictions read it.
struct LoadedNetwork {
  models::NetworkWork work;
  Bytes stored_sample{0};  // bytes of one sample on storage
};

// Each takes a name of the zoo or the catalogue, or the path of a YAML file. They throw InputError
// that names the option or the file.
[[nodiscard]] models::Network load_layers(const std::string& name_or_file);
// Without `sequence`, which --sequence says, the network has the length that it states.
[[nodiscard]] LoadedNetwork load_network(const std::string& name_or_file,
                                         std::optional<std::int64_t> sequence = {});
// The same of a network that is there.
[[nodiscard]] LoadedNetwork load_network(const models::Network& network,
                                         std::optional<std::int64_t> sequence);
[[nodiscard]] models::Cluster load_cluster(const std::string& name_or_file);
// The cluster with its ranks placed as --placement says; an empty placement is the cluster's own.
[[nodiscard]] models::Cluster placed(models::Cluster cluster, const std::string& placement);
[[nodiscard]] models::Cluster load_cluster(const std::string& name_or_file,
                                           const std::string& placement);

// The profile that --profile names, or the cluster's own where the option is empty; nothing for
// "none" and for a cluster that has none. Throws InputError.
[[nodiscard]] std::optional<models::Profile> load_profile(const std::string& option,
                                                          const models::Cluster& cluster);

// NICs as --nic names them: "roce-100g", "8xinfiniband-ndr", "100 Gbit/s". Throws InputError.
[[nodiscard]] models::OtherNic parse_nic(const std::string& text);

// A number of ranks that fits the cluster. Throws InputError that names --ranks.
[[nodiscard]] int parse_ranks(const std::string& text, const models::Cluster& cluster);

}  // namespace paceline::job
