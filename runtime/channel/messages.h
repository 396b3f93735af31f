// Collective operations on the control channel: for a few kilobytes, or for what happens once.
// Rank 0 sends to each other rank or receives from each, one after the other: O(ranks) messages.
//
// All ranks call the same function at the same point, except for the first two. Each throws RunError that names a rank that
// is gone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/channel/channel.h"

namespace paceline::runtime {

// A text of up to 64 MiB from one rank to another, which takes it by receive_text().
void send_text(Channel& channel, int to, const std::string& text);
[[nodiscard]] std::string receive_text(Channel& channel, int from);
// Gives all ranks the bytes of rank 0. The number of bytes is the same on every rank.
void broadcast(Channel& channel, std::span<std::byte> bytes);
// Returns the text of rank 0, which may have any length up to 64 MiB.
[[nodiscard]] std::string broadcast_text(Channel& channel, std::string text);
// Returns every rank's text in the order of ranks on rank 0, and nothing on the others.
[[nodiscard]] std::vector<std::string> gather_texts(Channel& channel, const std::string& text);
// Returns every rank's values, rank after rank, on rank 0, and nothing on the others. The number of
// values is the same on every rank.
[[nodiscard]] std::vector<float> gather(Channel& channel, std::span<const float> values);
// Replaces the values by their sums over the ranks. The ranks are added in their order, so all end
// with the same bits.
void sum_over_ranks(Channel& channel, std::span<double> values);
// Returns when every rank has called it.
void barrier(Channel& channel);

}  // namespace paceline::runtime
