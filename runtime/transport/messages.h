// Small messages of a job apart from gradients: what all ranks must know, or one must collect.
// Plain sends to and from one rank, on stream 0; for a few kilobytes, or for what happens once.
//
// All ranks call the same function at the same point. Throw RunError that names a rank that is
// gone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace paceline::runtime {

// `bytes` of rank 0, of the same length everywhere, to all ranks.
void broadcast(Transport& transport, std::span<std::byte> bytes);
// The text of rank 0, which may be of any length.
[[nodiscard]] std::string broadcast_text(Transport& transport, std::string text);
// Every rank's text, in the order of ranks, on rank 0; empty on others.
[[nodiscard]] std::vector<std::string> gather_texts(Transport& transport, const std::string& text);
// Every rank's values, rank after rank, on rank 0; empty on others. The same number on every rank.
[[nodiscard]] std::vector<float> gather(Transport& transport, std::span<const float> values);
// The sum over ranks, in their order, on all of them.
void sum_over_ranks(Transport& transport, std::span<double> values);

}  // namespace paceline::runtime
