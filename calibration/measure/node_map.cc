// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/node_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/transport_channel.h"

namespace paceline::calibration {
namespace {}  // namespace

int NodeMap::nodes() const {
  return node.empty() ? 0 : *std::max_element(node.begin(), node.end()) + 1;
}

std::vector<int> NodeMap::ranks_of(int which) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < node.size(); ++rank) {
    if (node[rank] == which) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> NodeMap::leaders() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < node.size(); ++rank) {
    if (node[rank] == static_cast<int>(ranks.size())) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> NodeMap::leaders_beside(int rank) const {
  const std::vector<int> all = leaders();
  if (std::find(all.begin(), all.end(), rank) == all.end()) return {};
  if (nodes_per_leaf < 2) return all;
  const int leaf = node[to_size(rank)] / nodes_per_leaf;
  std::vector<int> beside;
  for (const int leader : all) {
    if (node[to_size(leader)] / nodes_per_leaf == leaf) beside.push_back(leader);
  }
  return beside.size() < 2 ? std::vector<int>() : beside;
}

std::vector<int> NodeMap::leaders_across(int rank) const {
  const std::vector<int> all = leaders();
  if (nodes_per_leaf < 2 || std::find(all.begin(), all.end(), rank) == all.end()) return {};
  const int leaf = node[to_size(rank)] / nodes_per_leaf;
  const int first = leaf - leaf % 2;
  if ((first + 2) * nodes_per_leaf > nodes()) return {};
  const int place = first * nodes_per_leaf + node[to_size(rank)] % nodes_per_leaf;
  return {all[to_size(place)], all[to_size(place + nodes_per_leaf)]};
}

NodeMap find_nodes(runtime::Transport& transport, const std::string& host) {
  runtime::TransportChannel channel(transport);
  std::string text;
  std::map<std::string, int> numbers;
  for (const std::string& name : runtime::gather_texts(channel, host))
    text += fmt::format("{} ",
                        numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second);
  std::istringstream words(runtime::broadcast_text(channel, text));
  NodeMap map;
  for (int number = 0; words >> number;) map.node.push_back(number);
  PACELINE_ASSERT(static_cast<int>(map.node.size()) == transport.ranks(), "every rank has a node");
  return map;
}

}  // namespace paceline::calibration
