// Tests: tests/cli (end to end).
#include "cli/job/named_things.h"

#include <fmt/core.h>

#include <cctype>
#include <vector>

#include "calibration/shipped_profiles.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "models/base/limits.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"
#include "models/collective/catalogue.h"
#include "models/network/hugging_face.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"

namespace paceline::job {
namespace {

// Reads numbers between commas or blanks. What follows a # on its line is a comment.
std::vector<int> parse_slots(const std::string& text, int most) {
  std::vector<int> slots;
  std::string number;
  bool in_comment = false;
  const auto end_number = [&] {
    if (number.empty()) return;
    slots.push_back(static_cast<int>(parse_count(number, 0, most)));
    number.clear();
  };
  for (const char c : text) {
    in_comment = c != '\n' && (in_comment || c == '#');
    if (in_comment || c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_number();
    } else {
      number += c;
    }
  }
  end_number();
  if (slots.empty())
    throw InputError("a placement of no rank", "list the slot of each rank, as in 0,4,1,5");
  return slots;
}

void place_ranks(models::Cluster& cluster, const std::string& text) {
  const bool is_file = names_a_file(text) || text.ends_with(".txt");
  const bool is_list = !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
  const auto place = [&] {
    cluster.slots.clear();
    if (!is_file && !is_list) {
      cluster.placement = models::placement_from_name(text);
      return;
    }
    cluster.slots = parse_slots(is_file ? read_input_file(text) : text, cluster.ranks() - 1);
    models::check_slots(cluster.slots, cluster);
  };
  parsing_option(is_file ? text.c_str() : "--placement", place);
}

}  // namespace

models::Network load_layers(const std::string& name_or_file) {
  if (names_a_file(name_or_file)) {
    const std::string text = read_input_file(name_or_file);
    return models::looks_like_hugging_face(text) ? models::parse_hugging_face(text, name_or_file)
                                                 : models::parse_network_yaml(text, name_or_file);
  }
  return parsing_option("--model", [&] { return models::zoo_network(name_or_file); });
}

LoadedNetwork load_network(const std::string& name_or_file, std::optional<std::int64_t> sequence) {
  return load_network(load_layers(name_or_file), sequence);
}

LoadedNetwork load_network(const models::Network& network, std::optional<std::int64_t> sequence) {
  const Bytes stored = network.stored_sample_bytes();
  if (!sequence) return {models::work(network), stored};
  return parsing_option("--sequence", [&]() -> LoadedNetwork {
    const double share =
        static_cast<double>(*sequence) / static_cast<double>(network.input().height);
    return {models::work(network.with_sequence(*sequence)), share * stored};
  });
}

models::Cluster load_cluster(const std::string& name_or_file) {
  if (name_or_file.ends_with(".xml")) {
    throw InputError(
        {name_or_file}, "a platform says nothing of its devices",
        "write a cluster file around it: cluster, device, host_link and fabric: {platform: " +
            name_or_file + "}");
  }
  if (names_a_file(name_or_file))
    return models::parse_cluster_yaml(read_input_file(name_or_file), name_or_file, read_input_file);
  return parsing_option("--cluster", [&] { return models::catalog_cluster(name_or_file); });
}

models::Cluster placed(models::Cluster cluster, const std::string& placement) {
  if (!placement.empty()) place_ranks(cluster, placement);
  return cluster;
}

models::Cluster load_cluster(const std::string& name_or_file, const std::string& placement) {
  return placed(load_cluster(name_or_file), placement);
}

models::OtherNic parse_nic(const std::string& text) {
  constexpr int most_nics = 256;  // of a node, as in a cluster's file
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits != std::string::npos && digits > 0 && text[digits] == 'x')
    return {.link = models::catalog_link(text.substr(digits + 1)),
            .count = static_cast<int>(parse_count(text.substr(0, digits), 1, most_nics))};
  if (digits == 0) return {.link = models::catalog_link(text)};
  const BytesPerSecond bandwidth = parse_bandwidth(text);
  if (!within_limits(bandwidth))
    throw InputError(fmt::format("{} is out of range", in_quotes(text)),
                     fmt::format("write {} to {}", to_text(Limits<BytesPerSecond>::least),
                                 to_text(Limits<BytesPerSecond>::most)));
  return {.bandwidth = Figure<BytesPerSecond>::exact(bandwidth, Provenance::datasheet, "--nic")};
}

int parse_ranks(const std::string& text, const models::Cluster& cluster) {
  return parsing_option("--ranks", [&] {
    const std::int64_t ranks = parse_count(text, 1, models::max_ranks);
    models::check_ranks(cluster, ranks);
    return static_cast<int>(ranks);
  });
}

std::optional<models::Profile> load_profile(const std::string& option,
                                            const models::Cluster& cluster) {
  if (option == "none") return std::nullopt;
  if (names_a_file(option)) return models::parse_profile(read_input_file(option), option);
  if (!option.empty())
    return parsing_option("--profile", [&] { return calibration::shipped_profile(option); });
  if (cluster.profile.empty()) return std::nullopt;
  return names_a_file(cluster.profile)
             ? models::parse_profile(read_input_file(cluster.profile), cluster.profile)
             : calibration::shipped_profile(cluster.profile);
}

}  // namespace paceline::job
